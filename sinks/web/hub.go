package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// clientMessagesMax is how many messages wait for one event stream. A client
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
	server *Server
	every  time.Duration
	wake   chan struct{}
	status atomic.Bool // a sample was taken
	done   chan struct{}
	ended  chan struct{}
	once   sync.Once

	mu         sync.Mutex
	clients    map[*client]struct{}
	clientsMax int
	dropped    uint64 // slow clients, ever
	refused    uint64 // clients beyond clientsMax, ever
}

func newHub(s *Server) *hub {
	return &hub{
		server: s, every: s.config.StreamEvery, clientsMax: s.config.StreamsMax,
		wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
		clients: map[*client]struct{}{},
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
		pause.Reset(h.every)
		select {
		case <-pause.C:
		case <-h.done:
			return
		}
	}
}

// stop ends run and, through done, every event stream.
func (h *hub) stop() {
	h.once.Do(func() { close(h.done) })
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
	if len(h.clients) >= h.clientsMax {
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
	list, position, writes := h.server.store.take()
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
func pick(list []changed, names []string) []changed {
	if len(names) == 0 {
		return list
	}
	var out []changed
	for _, name := range names {
		i, _ := slices.BinarySearchFunc(list, name, func(c changed, n string) int {
			return strings.Compare(c.community, n)
		})
		for ; i < len(list) && list[i].community == name; i++ {
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
	f := frame{bytes: encodeFrame("status", "", h.server.statusNow(false))}
	for _, c := range clients {
		h.offer(c, f)
	}
}

// estimatesFrame encodes the message of one round.
func estimatesFrame(list []changed, position uint64) []byte {
	var b bytes.Buffer
	id := strconv.FormatUint(position, 10)
	b.WriteString("id: " + id + "\nevent: estimates\ndata: {\"position\":" + id + ",\"estimates\":[")
	for i, c := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		data, err := json.Marshal(&c.record.estimate)
		if err != nil { // check let only finite numbers in
			panic("web: " + err.Error())
		}
		b.Write(data)
	}
	b.WriteString("]}\n\n")
	return b.Bytes()
}

// encodeFrame encodes one event. JSON holds no newline, so one data line does.
func encodeFrame(event, id string, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic("web: " + err.Error())
	}
	var b bytes.Buffer
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("event: " + event + "\ndata: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}
