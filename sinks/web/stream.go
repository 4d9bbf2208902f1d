package web

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	streamNamesMax  = 64 // communities that one event stream may name
	streamWriteMax  = 10 * time.Second
	streamHeartbeat = 15 * time.Second
	retryAfter      = 5 // seconds, for a client that found no room
)

// hello is the first event of a stream.
type hello struct {
	Instance string `json:"instance"`
	Pipeline string `json:"pipeline"`
	Position uint64 `json:"position"`
}

// serveStream answers /api/v1/stream until the client or the server leaves.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request, query url.Values) {
	c, problem := newClient(query)
	if problem != "" {
		fail(w, http.StatusBadRequest, problem)
		return
	}
	defer s.hub.open.Add(-1)
	if s.hub.open.Add(1) > int64(s.config.StreamsMax) {
		s.hub.refused.Add(1)
		fail(w, http.StatusServiceUnavailable, "too many event streams")
		return
	}
	out := &stream{w: w, control: http.NewResponseController(w)}
	_ = out.control.SetReadDeadline(time.Time{}) // the body is empty; only the client's leaving is left to read
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	s.pump(r, c, out)
}

// client is what an event stream is asked for.
type client struct {
	names             []string // communities, sorted; empty: all
	key               string   // of names
	estimates, status bool
}

func newClient(query url.Values) (*client, string) {
	c := &client{names: slices.Clone(query["community"])}
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
	if len(c.names) > streamNamesMax {
		return nil, "too many communities: name up to 64, or none for all"
	}
	c.key = strings.Join(c.names, "\x00")
	for name := range strings.SplitSeq(cmp.Or(query.Get("events"), "estimates,status"), ",") {
		switch name {
		case "estimates":
			c.estimates = true
		case "status":
			c.status = true
		default:
			return nil, "events: want estimates, status or both"
		}
	}
	return c, ""
}

// pump sends the greeting, the latest estimates of the communities named, and then whenever
// there is news what has changed since the last time.
func (s *Server) pump(r *http.Request, c *client, out *stream) {
	after := uint64(0)
	if len(c.names) == 0 {
		after = math.MaxUint64 // of all of them only what changes from now on
	}
	list, position, written := s.store.since(c.names, after)
	out.send(encodeEvent("hello", strconv.FormatUint(position, 10), hello{s.instance, s.config.Pipeline, position}))
	if c.estimates && len(list) > 0 {
		out.send(estimatesEvent(list, position))
	}
	sampled := s.hub.samples.Load()
	if c.status {
		out.send(encodeEvent("status", "", s.statusNow(false)))
	}
	heartbeat := time.NewTicker(streamHeartbeat)
	defer heartbeat.Stop()
	for out.err == nil {
		news := s.hub.next()
		if c.estimates {
			m := s.hub.estimates(c, written)
			out.send(m.bytes)
			written = m.until
		}
		if c.status {
			m := s.hub.status(sampled)
			out.send(m.bytes)
			sampled = m.until
		}
		select {
		case <-news:
		case <-heartbeat.C:
			out.send([]byte(": keep-alive\n\n"))
		case <-s.hub.done:
			out.send(encodeEvent("reconnect", "", map[string]string{"reason": "closing"}))
			return
		case <-r.Context().Done():
			return
		}
	}
}

// stream writes events until the first error.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (o *stream) send(data []byte) {
	if o.err != nil || len(data) == 0 {
		return
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(streamWriteMax))
	if _, o.err = o.w.Write(data); o.err == nil {
		o.err = o.control.Flush()
	}
}
