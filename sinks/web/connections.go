package web

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// idleMax is the number of connections, beside those of the requests that are answered at a time,
// that wait for the next question of a page or a probe.
const idleMax = 1_000

// connections bounds the connections that are open. The server says through
// http.Server.ConnState what becomes of each. A new one beyond the bound closes the one that
// has waited longest for a whole request, so that silent connections and half requests cannot
// take the place of those who ask.
type connections struct {
	most int
	mu   sync.Mutex
	open map[net.Conn]time.Time // since when each waits for a request; zero while one is answered
}

// changed takes note of the new state of a connection.
func (c *connections) changed(nc net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.open[nc]
	switch {
	case state == http.StateNew:
		c.open[nc] = time.Now()
		if len(c.open) > c.most {
			c.closeLongest()
		}
	case !known: // it was closed for another one
	case state == http.StateActive: // a request was read
		c.open[nc] = time.Time{}
	case state == http.StateIdle:
		c.open[nc] = time.Now()
	default:
		delete(c.open, nc)
	}
}

// closeLongest closes the connection that has waited longest. The caller holds mu.
func (c *connections) closeLongest() {
	var longest net.Conn
	for nc, since := range c.open {
		if !since.IsZero() && (longest == nil || since.Before(c.open[longest])) {
			longest = nc
		}
	}
	delete(c.open, longest)
	if t, ok := longest.(interface{ NetConn() net.Conn }); ok { // TLS, which would say goodbye first
		longest = t.NetConn()
	}
	_ = longest.Close()
}
