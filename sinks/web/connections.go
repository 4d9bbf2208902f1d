package web

import (
	"net"
	"net/http"
	"sync/atomic"
)

// idleMax is the number of connections, beside those of the requests that are answered at a time,
// that wait for the next question of a page or a probe.
const idleMax = 1_000

// connections bounds the connections that are open. The server says through
// http.Server.ConnState what becomes of each. A new one beyond the bound has the server close all
// that wait for a request, but for those that are younger than five seconds, after which a half request
// ends by itself. Beyond twice the bound a new one is closed, so that a flood of those ends somewhere.
type connections struct {
	server *http.Server
	most   atomic.Int64 // connections; tests lower it
	open   atomic.Int64
}

// changed takes note of the new state of a connection.
func (c *connections) changed(nc net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		n, most := c.open.Add(1), c.most.Load()
		if n > most {
			c.server.SetKeepAlivesEnabled(false) // closes them
			c.server.SetKeepAlivesEnabled(true)
		}
		if n > 2*most {
			_ = nc.Close()
		}
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	}
}
