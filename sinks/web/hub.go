package web

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gqlstream/quant"
)

// hub tells the event streams that there is news, at most once in every period. Each stream
// then asks for what it has not sent, so that one that is slow is sent less, and the newest.
type hub struct {
	view    *view
	samples atomic.Uint64 // of the status that were taken
	done    chan struct{} // closed at the end
	stop    func()        // closes done, once

	open    atomic.Int64  // event streams
	refused atomic.Uint64 // event streams beyond Config.StreamsMax, ever

	mu      sync.Mutex
	news    chan struct{} // closed, and replaced, when there is some
	told    time.Time     // when that was
	telling bool          // it is about to be

	encoding sync.Mutex
	messages map[messageKey]message // since the last news: most streams have sent as much as others
}

// messageKey says what a message of a stream is about.
type messageKey struct {
	names string // of communities, see client
	after uint64 // what was sent, in writes of the store or samples of the status
	about string // the name of the event
}

// message is an event, empty if there is nothing to say, and up to where it goes.
type message struct {
	bytes []byte
	until uint64
}

func newHub(v *view) *hub {
	done := make(chan struct{})
	return &hub{
		view: v, done: done, stop: sync.OnceFunc(func() { close(done) }), news: make(chan struct{}), messages: map[messageKey]message{},
	}
}

// tell wakes the streams, now or when the period since the last time is over.
func (h *hub) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.telling {
		h.telling = true
		time.AfterFunc(h.view.config.StreamEvery-time.Since(h.told), h.wake)
	}
}

func (h *hub) wake() {
	h.encoding.Lock()
	h.messages = map[messageKey]message{}
	h.encoding.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.telling, h.told = false, time.Now()
	close(h.news)
	h.news = make(chan struct{})
}

func (h *hub) statusChanged() {
	h.samples.Add(1)
	h.tell()
}

// next returns what is closed when there is news again.
func (h *hub) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.news
}

// streams returns the number of event streams that are open.
func (h *hub) streams() int { return int(h.open.Load()) }

// message returns what make returns for a key, which it is asked once between two news.
func (h *hub) message(key messageKey, make func() message) message {
	h.encoding.Lock()
	defer h.encoding.Unlock()
	m, ok := h.messages[key]
	if !ok {
		m = make()
		h.messages[key] = m
	}
	return m
}

// estimates returns the newest records of the communities named, or of all, that were
// written after so many writes.
func (h *hub) estimates(c *client, after uint64) message {
	return h.message(messageKey{c.key, after, "estimates"}, func() message {
		list, position, writes := h.view.store.since(c.names, after)
		m := message{until: writes}
		if len(list) > 0 {
			m.bytes = estimatesEvent(list, position)
		}
		return m
	})
}

// status returns the status, if samples were taken after so many.
func (h *hub) status(after uint64) message {
	if h.samples.Load() == after {
		return message{until: after}
	}
	return h.message(messageKey{after: after, about: "status"}, func() message {
		until := h.samples.Load()
		return message{encodeEvent("status", "", h.view.statusNow(false)), until}
	})
}

// estimatesEvent encodes records that are sent together.
func estimatesEvent(list []*record, position uint64) []byte {
	out := struct {
		Position  uint64            `json:"position"`
		Estimates []*quant.Estimate `json:"estimates"`
	}{Position: position}
	for _, r := range list {
		out.Estimates = append(out.Estimates, &r.estimate)
	}
	return encodeEvent("estimates", strconv.FormatUint(position, 10), out)
}

// encodeEvent encodes one event. JSON holds no newline, so one data line does.
func encodeEvent(event, id string, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil { // check let only finite numbers in
		panic("web: " + err.Error())
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return slices.Concat([]byte(id+"event: "+event+"\ndata: "), data, []byte("\n\n"))
}
