package web

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// listener bounds the connections that are not event streams: Accept waits while
// there are too many. A connection that turns into a stream gives its slot back,
// because streams have their own bound.
type listener struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

func newListener(inner net.Listener, connectionsMax int) *listener {
	return &listener{
		Listener: inner, slots: make(chan struct{}, max(connectionsMax, 1)), done: make(chan struct{}),
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
	return &conn{Conn: inner, listener: l, holds: true}, nil
}

// Close ends a waiting Accept too.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// conn is a connection that knows whether it holds a slot.
type conn struct {
	net.Conn
	listener *listener
	mu       sync.Mutex
	holds    bool
	closed   bool
	streams  int // HTTP/2 may carry several
}

// beginStream gives the slot back while at least one event stream runs.
func (c *conn) beginStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams++
	c.release()
}

// endStream takes a slot again for whatever follows, and closes the connection
// when there is none.
func (c *conn) endStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams--; c.streams > 0 || c.closed {
		return
	}
	select {
	case c.listener.slots <- struct{}{}:
		c.holds = true
	default:
		c.closed = true
		_ = c.Conn.Close()
	}
}

// Close closes the connection and gives its slot back, once.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.release()
	c.mu.Unlock()
	return c.Conn.Close()
}

func (c *conn) release() {
	if c.holds {
		c.holds = false
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
