package web

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gqlstream/quant"
)

// clientMessagesMax bounds the messages that wait for one event stream. A client
// with one more is slow: it is told to reconnect, and dropped.
const clientMessagesMax = 16

// frame is one message of an event stream, shared by all clients it goes to.
type frame struct {
	writes uint64 // of the store, when it was made; 0 for others than estimates
	bytes  []byte
}

// client is one event stream.
type client struct {
	names     []string // communities, sorted; empty: all
	key       string   // of names
	estimates bool
	status    bool
	frames    chan frame
	slow      chan struct{} // closed when it is dropped
}

// hub sends what changed to the event streams, from one goroutine.
type hub struct {
	view   *view
	wake   chan struct{}
	status atomic.Bool // a sample was taken
	done   chan struct{}
	ended  chan struct{}
	end    func() // closes done, once

	mu      sync.Mutex
	clients map[*client]struct{}
	dropped uint64 // slow clients, ever
	refused uint64 // clients beyond Config.StreamsMax, ever
}

func newHub(v *view) *hub {
	done := make(chan struct{})
	return &hub{
		view: v, wake: make(chan struct{}, 1), done: done, ended: make(chan struct{}),
		end: sync.OnceFunc(func() { close(done) }), clients: map[*client]struct{}{},
	}
}

// run sends until stop, at most one round in every period.
func (h *hub) run() {
	defer close(h.ended)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-h.wake:
		case <-h.done:
			return
		}
		h.sendEstimates()
		if h.status.Swap(false) {
			h.sendStatus()
		}
		pause.Reset(h.view.config.StreamEvery)
		select {
		case <-pause.C:
		case <-h.done:
			return
		}
	}
}

// stop ends run and, through done, every event stream.
func (h *hub) stop() {
	h.end()
	<-h.ended
}

func (h *hub) wakeUp() {
	select {
	case h.wake <- struct{}{}:
	default: // it is awake
	}
}

func (h *hub) statusChanged() {
	h.status.Store(true)
	h.wakeUp()
}

// join adds a client; false when there are too many, or the server closes.
func (h *hub) join(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.done:
		return false
	default:
	}
	if len(h.clients) >= h.view.config.StreamsMax {
		h.refused++
		return false
	}
	h.clients[c] = struct{}{}
	return true
}

func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c)
}

// count returns the number of clients.
func (h *hub) count() int {
	clients, _, _ := h.counts()
	return clients
}

// counts returns the number of clients, of those dropped and of those refused.
func (h *hub) counts() (clients int, dropped, refused uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients), h.dropped, h.refused
}

// listeners returns the clients that want what the predicate says.
func (h *hub) listeners(want func(*client) bool) []*client {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*client, 0, len(h.clients))
	for c := range h.clients {
		if want(c) {
			out = append(out, c)
		}
	}
	return out
}

// offer hands a frame to a client, and drops the client when it is full.
func (h *hub) offer(c *client, f frame) {
	select {
	case c.frames <- f:
		return
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.clients[c]; ok {
		delete(h.clients, c)
		h.dropped++
		close(c.slow)
	}
}

func (h *hub) sendEstimates() {
	list, position, writes := h.view.store.take()
	clients := h.listeners(func(c *client) bool { return c.estimates })
	if len(list) == 0 || len(clients) == 0 {
		return
	}
	frames := map[string]frame{} // by filter; an empty frame: nothing for it
	for _, c := range clients {
		f, ok := frames[c.key]
		if !ok {
			if mine := pick(list, c.names); len(mine) > 0 {
				f = frame{writes: writes, bytes: estimatesFrame(mine, position)}
			}
			frames[c.key] = f
		}
		if f.bytes != nil {
			h.offer(c, f)
		}
	}
}

// pick returns the part of a sorted list that belongs to the names, sorted too;
// no names ask for all.
func pick(list []*record, names []string) []*record {
	if len(names) == 0 {
		return list
	}
	var out []*record
	for _, name := range names {
		i, _ := slices.BinarySearchFunc(list, name, func(r *record, n string) int { return strings.Compare(r.estimate.Community, n) })
		for ; i < len(list) && list[i].estimate.Community == name; i++ {
			out = append(out, list[i])
		}
	}
	return out
}

func (h *hub) sendStatus() {
	clients := h.listeners(func(c *client) bool { return c.status })
	if len(clients) == 0 {
		return
	}
	f := frame{bytes: encodeFrame("status", "", h.view.statusNow(false))}
	for _, c := range clients {
		h.offer(c, f)
	}
}

// estimatesFrame encodes the message of one round.
func estimatesFrame(list []*record, position uint64) []byte {
	out := struct {
		Position  uint64            `json:"position"`
		Estimates []*quant.Estimate `json:"estimates"`
	}{Position: position}
	for _, r := range list {
		out.Estimates = append(out.Estimates, &r.estimate)
	}
	return encodeFrame("estimates", strconv.FormatUint(position, 10), out)
}

// encodeFrame encodes one event. JSON holds no newline, so one data line does.
func encodeFrame(event, id string, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil { // check let only finite numbers in
		panic("web: " + err.Error())
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return slices.Concat([]byte(id+"event: "+event+"\ndata: "), data, []byte("\n\n"))
}
