package web

import (
	"cmp"
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
	if !s.hub.join(c) {
		fail(w, http.StatusServiceUnavailable, "too many event streams")
		return
	}
	defer s.hub.leave(c)
	out := &stream{w: w, control: http.NewResponseController(w)}
	_ = out.control.SetReadDeadline(time.Time{}) // the body is empty; only the client's leaving is left to read
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	s.pump(r, c, out)
}

// newClient reads what a stream is asked for.
func newClient(query url.Values) (*client, string) {
	c := &client{frames: make(chan frame, clientMessagesMax), slow: make(chan struct{})}
	c.names = slices.Clone(query["community"])
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

// pump sends the greeting, the latest estimates of the communities named, and
// then what the hub gives, in that order.
func (s *Server) pump(r *http.Request, c *client, out *stream) {
	list, position, writes := s.store.latest(c.names)
	out.send(encodeFrame("hello", strconv.FormatUint(position, 10), hello{s.instance, s.config.Pipeline, position}))
	if c.estimates && len(list) > 0 {
		out.send(estimatesFrame(list, position))
	}
	if c.status {
		out.send(encodeFrame("status", "", s.statusNow(false)))
	}
	heartbeat := time.NewTicker(streamHeartbeat)
	defer heartbeat.Stop()
	for out.err == nil {
		select {
		case <-c.slow:
			out.send(goodbye("slow"))
			return
		default:
		}
		select {
		case f := <-c.frames:
			if f.writes == 0 || f.writes > writes { // else the latest above hold it
				out.send(f.bytes)
			}
		case <-c.slow: // seen above
		case <-heartbeat.C:
			out.send([]byte(": keep-alive\n\n"))
		case <-s.hub.done:
			out.send(goodbye("closing"))
			return
		case <-r.Context().Done():
			return
		}
	}
}

// goodbye is the last event of a stream that the server ends.
func goodbye(reason string) []byte {
	return encodeFrame("reconnect", "", map[string]string{"reason": reason})
}

// stream writes events until the first error.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (o *stream) send(data []byte) {
	if o.err != nil {
		return
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(streamWriteMax))
	if _, o.err = o.w.Write(data); o.err == nil {
		o.err = o.control.Flush()
	}
}
