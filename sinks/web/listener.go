package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// probeSlots is the number of connections beyond the bound that only probes may use.
const probeSlots = 8

// listener bounds the connections that are not event streams, which have their own
// bound. Above three quarters of it each new connection closes the one that has waited
// longest for a whole request, so that silent connections and half requests cannot take
// the place of those who ask. While as many requests as the bound are being answered,
// the next connections are for probes only, and beyond these Accept waits.
type listener struct {
	net.Listener
	most  int
	slots chan struct{}
	done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	counted map[*conn]struct{} // those that hold a slot
}

func newListener(inner net.Listener, connectionsMax int) *listener {
	most := max(connectionsMax, 1)
	return &listener{
		Listener: inner, most: most, slots: make(chan struct{}, most+probeSlots), done: make(chan struct{}),
		counted: map[*conn]struct{}{},
	}
}

// Accept waits for a slot and then for a connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	inner, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	c := &conn{Conn: inner, listener: l, since: time.Now()}
	l.mu.Lock()
	if longest := l.longestIdle(); longest != nil {
		_ = longest.shut()
	}
	c.probesOnly = len(l.counted) >= l.most
	l.counted[c] = struct{}{}
	l.mu.Unlock()
	return c, nil
}

// longestIdle returns the connection to close for a new one, nil when there is room
// or none is idle. The caller holds mu.
func (l *listener) longestIdle() (longest *conn) {
	if 4*len(l.counted) < 3*l.most {
		return nil
	}
	for c := range l.counted {
		if c.requests == 0 && (longest == nil || c.since.Before(longest.since)) {
			longest = c
		}
	}
	return longest
}

// Close ends a waiting Accept too.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// conn is a connection that knows what it is used for. The listener's mutex guards
// all but Conn.
type conn struct {
	net.Conn
	listener   *listener
	requests   int       // being answered; HTTP/2 may carry several
	streams    int       // of these, event streams
	since      time.Time // when it was opened, or the last request was answered
	closed     bool
	probesOnly bool
}

// begin notes a request, and reports whether any but a probe may be answered.
func (c *conn) begin() (all bool) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.requests++
	return !c.probesOnly
}

func (c *conn) end() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.requests--
	c.since = time.Now()
}

// beginStream gives the slot back while at least one event stream runs.
func (c *conn) beginStream() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.streams++
	c.release()
}

// endStream takes a slot again for whatever follows, and closes the connection
// when there is none.
func (c *conn) endStream() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.streams--; c.streams > 0 || c.closed {
		return
	}
	select {
	case c.listener.slots <- struct{}{}:
		c.listener.counted[c] = struct{}{}
	default:
		_ = c.shut()
	}
}

// Close closes the connection and gives its slot back, once.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	return c.shut()
}

// shut is Close for a caller that holds mu.
func (c *conn) shut() error {
	c.closed = true
	c.release()
	return c.Conn.Close()
}

// release gives the slot back, if the connection holds one. The caller holds mu.
func (c *conn) release() {
	if _, holds := c.listener.counted[c]; holds {
		delete(c.listener.counted, c)
		<-c.listener.slots
	}
}

type connKey struct{}

// rememberConn makes the connection known to handlers.
func rememberConn(ctx context.Context, nc net.Conn) context.Context {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS
		nc = t.NetConn()
	}
	if c, ok := nc.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// connOf returns the connection of a request, nil under a test's own server.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}
