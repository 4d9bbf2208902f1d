package web

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// idleMax is the number of idle connections: they wait for the next request of a page or a
// probe, and come on top of those with a request.
const idleMax = 1_000

// connections bounds the connections that are open. The server reports their states through
// http.Server.ConnState. A new one beyond the bound makes the server close every idle connection
// older than five seconds; a half request times out in this time. Beyond twice the bound the
// server closes the oldest idle connection. So a flood is bounded, and a new probe is answered.
type connections struct {
	server *http.Server
	most   atomic.Int64 // connections; tests lower it
	open   atomic.Int64

	mu      sync.Mutex
	waiting list.List // of net.Conn, that wait for a request, the one that has waited longest first
	places  map[net.Conn]*list.Element
}

// changed takes note of the new state of a connection.
func (c *connections) changed(nc net.Conn, state http.ConnState) {
	c.wait(nc, state == http.StateNew || state == http.StateIdle)
	switch state {
	case http.StateNew:
		n, most := c.open.Add(1), c.most.Load()
		if n > most {
			c.server.SetKeepAlivesEnabled(false) // closes them
			c.server.SetKeepAlivesEnabled(true)
		}
		if n > 2*most {
			_ = c.longest(nc).Close()
		}
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	}
}

// wait notes whether a connection waits for a request from now on.
func (c *connections) wait(nc net.Conn, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.places[nc]; at != nil {
		c.waiting.Remove(at)
		delete(c.places, nc)
	}
	if waits {
		if c.places == nil {
			c.places = map[net.Conn]*list.Element{}
		}
		c.places[nc] = c.waiting.PushBack(nc)
	}
}

// longest returns the connection that has waited longest for a request, and takes it off the list.
// One that is new waits as well.
func (c *connections) longest(new net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.waiting.Front()
	if first == nil {
		return new
	}
	nc := c.waiting.Remove(first).(net.Conn)
	delete(c.places, nc)
	return nc
}
