package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gqlstream/quant"
)

// event is one server-sent event.
type event struct{ name, id, data string }

// events reads a stream.
type events struct {
	t       testing.TB
	scanner *bufio.Scanner
}

func newEvents(t testing.TB, r io.Reader) *events {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 64<<20)
	return &events{t, s}
}

// next returns the next event; its name is "end" when there is none.
func (e *events) next() event {
	var out event
	for e.scanner.Scan() {
		line := e.scanner.Text()
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && out.name != "":
			return out
		case line == "", strings.HasPrefix(line, ":"):
		case field == "event":
			out.name = value
		case field == "id":
			out.id = value
		case field == "data":
			out.data += value
		default:
			e.t.Errorf("line %q in a stream", line)
		}
	}
	return event{name: "end"}
}

// named returns the next event of a name.
func (e *events) named(name string) event {
	e.t.Helper()
	for {
		switch got := e.next(); got.name {
		case name:
			return got
		case "end":
			e.t.Fatalf("the stream ended before %s: %v", name, e.scanner.Err())
		}
	}
}

type estimatesMessage struct {
	Position  uint64           `json:"position"`
	Estimates []quant.Estimate `json:"estimates"`
}

func (e *events) estimates() estimatesMessage {
	e.t.Helper()
	var m estimatesMessage
	if err := json.Unmarshal([]byte(e.named("estimates").data), &m); err != nil {
		e.t.Fatal(err)
	}
	return m
}

// follow opens a stream that ends with the test.
func follow(t testing.TB, s *Server, query string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, "GET", s.URL()+"api/v1/stream"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := newHTTP(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reply.Body.Close() })
	if reply.StatusCode != 200 || reply.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream: %d %s", reply.StatusCode, reply.Header.Get("Content-Type"))
	}
	return newEvents(t, reply.Body)
}

func TestStreamBeginsWithTheLatest(t *testing.T) {
	s := serve(t, nil)
	write(t, s, estimate("a", "auto", 7, 0.1), estimate("a", "pcc", 7, 0.2), estimate("b", "auto", 7, 0.3))
	e := follow(t, s, "?community=b&community=a&community=nobody&events=estimates")
	var m hello
	if err := json.Unmarshal([]byte(e.named("hello").data), &m); err != nil || m.Position != 7 || m.Instance != s.instance {
		t.Errorf("hello %+v, %v", m, err)
	}
	first := e.estimates()
	if len(first.Estimates) != 3 || first.Position != 7 {
		t.Errorf("%d estimates at %d, want 3 at 7", len(first.Estimates), first.Position)
	}
	write(t, s, estimate("c", "auto", 8, 0.1), estimate("b", "auto", 8, 0.4))
	next := e.estimates()
	if len(next.Estimates) != 1 || next.Estimates[0].Community != "b" || next.Estimates[0].Prevalence[1] != 0.4 {
		t.Errorf("then %+v", next)
	}
}

// Whatever the timing of writers and readers, each series of each stream goes
// forward only, positions never decrease, and the last write arrives.
func TestStreamsNeverGoBack(t *testing.T) {
	s := serve(t, nil)
	const rounds = 400
	var readers sync.WaitGroup
	for i := range 8 {
		query := "?events=estimates"
		if i%2 == 1 {
			query += "&community=c00001&community=c00003"
		}
		e := follow(t, s, query)
		readers.Go(func() {
			last, latest := uint64(0), map[string]uint64{}
			for latest["c00001"] < rounds {
				got := e.next()
				if got.name == "end" || got.name == "reconnect" {
					t.Errorf("reader %d: %s after position %d", i, got.name, last)
					return
				}
				if got.name != "estimates" {
					continue
				}
				var m estimatesMessage
				if err := json.Unmarshal([]byte(got.data), &m); err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
				if m.Position < last || fmt.Sprint(m.Position) != got.id {
					t.Errorf("reader %d: position %d (id %s) after %d", i, m.Position, got.id, last)
				}
				last = m.Position
				for _, x := range m.Estimates {
					if x.Position <= latest[x.Community] && latest[x.Community] != 0 {
						t.Errorf("reader %d: %s at %d after %d", i, x.Community, x.Position, latest[x.Community])
					}
					latest[x.Community] = x.Position
				}
			}
		})
	}
	for round := range uint64(rounds) {
		var list []quant.Estimate
		for _, name := range names(5) {
			list = append(list, estimate(name, "auto", round+1, 0.5))
		}
		write(t, s, list...)
	}
	readers.Wait()
}

// A client that does not read must hold up neither the others nor the writer, cost no memory of what
// it has missed, and get the newest of everything when it reads again.
func TestSlowClientGetsTheNewest(t *testing.T) {
	s := serve(t, nil)
	slow, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, plainGet("/api/v1/stream?events=estimates", "localhost")); err != nil {
		t.Fatal(err)
	}
	fast := follow(t, s, "?community=c00000&events=estimates")
	fast.named("hello")
	const rounds = 30 // of 1 MB each, before the write to the slow client is given up
	list := make([]quant.Estimate, 2000)
	for round := uint64(1); round <= rounds; round++ {
		for i, name := range names(len(list)) {
			list[i] = estimate(name, "auto", round, 0.5)
		}
		write(t, s, list...)
		if got := fast.estimates(); got.Position != round {
			t.Fatalf("the fast client is at %d, want %d", got.Position, round)
		}
	}
	_ = slow.SetDeadline(time.Now().Add(30 * time.Second))
	reply, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	e := newEvents(t, reply.Body)
	messages := 0
	for last := uint64(0); last < rounds; messages++ {
		got := e.estimates()
		if last = got.Position; last == rounds && len(got.Estimates) != len(list) {
			t.Errorf("the last message has %d estimates, want %d", len(got.Estimates), len(list))
		}
	}
	if messages > rounds/2 {
		t.Errorf("it got %d messages of %d", messages, rounds)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	s := serve(t, func(c *Config) { c.StreamsMax = 2 })
	for range 2 {
		follow(t, s, "").named("hello")
	}
	code, header, _ := get(t, s, "/api/v1/stream")
	if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("a third stream: code %d", code)
	}
	if refused := s.hub.refused.Load(); refused != 1 {
		t.Errorf("%d refused, want 1", refused)
	}
}

func TestClientThatLeavesFreesItsPlace(t *testing.T) {
	s := serve(t, func(c *Config) { c.StreamsMax = 1 })
	end := time.Now().Add(20 * time.Second)
	for range 5 {
		for code := 0; code != 200; { // the place is free as soon as the server notices
			reply, err := newHTTP(t).Get(s.URL() + "api/v1/stream")
			if err != nil || time.Now().After(end) {
				t.Fatalf("code %d, %v", code, err)
			}
			if code = reply.StatusCode; code == 200 {
				newEvents(t, reply.Body).named("hello")
			}
			reply.Body.Close() // leaves
		}
	}
}

func TestStatusIsStreamed(t *testing.T) {
	s := serve(t, nil)
	e := follow(t, s, "?events=status")
	var got statusAnswer
	if err := json.Unmarshal([]byte(e.named("status").data), &got); err != nil || got.State != "starting" {
		t.Errorf("first status %q, %v", got.State, err)
	}
	s.Status(runningStatus(5))
	if err := json.Unmarshal([]byte(e.named("status").data), &got); err != nil || got.State != "running" || got.Steps != 5 {
		t.Errorf("then %q at %d, %v", got.State, got.Steps, err)
	}
	write(t, s, estimate("a", "auto", 1, 0.5))
}

// Close tells every stream to reconnect and does not wait for them to go.
func TestCloseEndsStreams(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0", Classes: []string{"no", "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	var all []*events
	for range 20 {
		e := follow(t, s, "")
		e.named("hello")
		all = append(all, e)
	}
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > shutdownWaitMax {
		t.Errorf("closing took %v", took)
	}
	for _, e := range all {
		if got := e.named("reconnect"); got.data != `{"reason":"closing"}` {
			t.Errorf("reconnect %q", got.data)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if err := s.Write(context.Background(), []quant.Estimate{estimate("a", "auto", 1, 0.5)}); err != nil {
		t.Errorf("writing after: %v", err)
	}
}

// A hostile name must stay one data line of JSON.
func TestNamesCannotForgeEvents(t *testing.T) {
	s := serve(t, nil)
	e := follow(t, s, "?events=estimates")
	e.named("hello")
	for _, name := range hostileNames() {
		write(t, s, estimate(name, "auto", 1, 0.5))
		m := e.estimates()
		if len(m.Estimates) != 1 || m.Estimates[0].Community != name {
			t.Errorf("%q came as %+v", name, m)
		}
	}
}
