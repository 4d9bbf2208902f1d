package web

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// idleMax is the number of connections, beside those of the requests that are answered at a time,
// that wait for the next question of a page or a probe.
const idleMax = 1_000

// connections bounds the connections that are open. The server says through http.Server.ConnState
// what becomes of each. A new one beyond the bound has the server close all that wait for a
// request, but for those that are younger than five seconds, after which a half request ends by
// itself. Beyond twice the bound the one that has waited longest is closed, so that a flood ends
// somewhere, and a probe that has just come is answered.
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
