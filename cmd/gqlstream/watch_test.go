package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
	"gqlstream/sinks/web/webtest"
)

// spoken is an output that a test waits for.
type spoken struct {
	mu      sync.Mutex
	text    string
	changed chan struct{} // closed and replaced at every write
}

func newSpoken() *spoken { return &spoken{changed: make(chan struct{})} }

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += string(p)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

// now returns the output so far.
func (s *spoken) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// forget empties the output.
func (s *spoken) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = ""
}

// await returns when the output holds the text, whatever the widths of its columns.
func (s *spoken) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		now, changed := squeezed(s.text), s.changed
		s.mu.Unlock()
		if strings.Contains(now, text) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("no %q in\n%s", text, now)
		}
	}
}

// squeezed has one space wherever there are some.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

// watchedPage serves a page with an estimate of two communities, the second flagged.
func watchedPage(t *testing.T, listen string, position uint64, names ...string) *web.Server {
	t.Helper()
	log := &webtest.Log{}
	page, err := web.New(web.Config{
		HTTP:    web.HTTP{Listen: listen},
		Classes: []string{"left", "right"},
		Questions: web.Questions{
			Records: log.Read,
			InForce: log.InForce,
			Rollups: func(context.Context, sinks.RollupQuery) (sinks.RollupAnswer, error) {
				return sinks.RollupAnswer{}, nil
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { page.Close() })
	if len(names) == 0 {
		names = []string{"a", "b\x1b[31m"}
	}
	var list []quant.Estimate
	for i, name := range names {
		list = append(list, quant.Estimate{
			Community: name, Position: position, Time: "2026-03-01T12:00:00Z", Method: "auto",
			Members:    20,
			Prevalence: []float64{0.25, 0.75}, Low: []float64{0.2, 0.7}, High: []float64{0.3, 0.8},
			SE: []float64{0.03, 0.04}, NEff: []float64{50, 60}, Flags: []string{"thin:0"}[:i],
		})
	}
	log.Add(list...)
	page.Write(list)
	return page
}

// watch must show the present state at each interval, wait for a page that is not up yet or
// goes away, and not let names control the terminal.
func TestWatchShowsThePresentAndConnectsAgain(t *testing.T) {
	page := watchedPage(t, "127.0.0.1:0", 1)
	address := page.Addr().String()
	page.Close()
	out, diagnostics := newSpoken(), newSpoken()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{
			"watch", "--url", "http://" + address, "--every", "100ms",
			"--class", "right",
		},
			console{Out: out, Err: diagnostics})
	}()
	diagnostics.await(t, "waiting for a page at http://"+address)
	page = watchedPage(t, address, 1)
	out.await(t, "b?[31m 20 0.750 [0.700 0.800] 0s thin:0")
	page.Close()
	out.await(t, "trying again: no page at")
	out.forget()
	watchedPage(t, address, 2)
	out.await(t, "starting, position 0")
	cancel()
	if code := <-ended; code != exitFine {
		t.Errorf("exit %d", code)
	}
	if strings.Contains(out.text, "\x1b") {
		t.Errorf("a name can steer a terminal:\n%s", out.text)
	}
}

// A page without an estimate must not look like one that does not answer.
func TestWatchReportsMissingEstimates(t *testing.T) {
	page, err := web.New(
		web.Config{HTTP: web.HTTP{Listen: "127.0.0.1:0"}, Classes: []string{"left", "right"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { page.Close() })
	if _, said := mustRun(t, "watch", "--url", page.URL(), "--count", "1"); !strings.Contains(
		said,
		"no estimates yet",
	) {
		t.Errorf("it says %q", said)
	}
}

func TestWatchShowsFlaggedCommunitiesOnly(t *testing.T) {
	page := watchedPage(t, "127.0.0.1:0", 1)
	out, _ := mustRun(t, "watch", "--url", page.URL(), "--count", "1", "--flagged")
	if strings.Contains(out, "\na ") || strings.Count(out, "thin:0") != 1 {
		t.Errorf("shown:\n%s", out)
	}
}

// The flag is looked for in all communities, not in the first thousand: here only the
// last three of 2,000 have one.
func TestWatchFindsFlagsBeyondTheFirstThousand(t *testing.T) {
	page := watchedPage(t, "127.0.0.1:0", 1, "a")
	var list []quant.Estimate
	for i := range 2000 {
		e := quant.Estimate{
			Community:  fmt.Sprint("c", i),
			Position:   2,
			Method:     "auto",
			Prevalence: []float64{0.25, 0.75},
			NEff:       []float64{50, 60},
		}
		if i >= 1997 {
			e.Flags = []string{"thin:0"}
		}
		list = append(list, e)
	}
	page.Write(list)
	out, _ := mustRun(
		t, "watch", "--url", page.URL(), "--count", "1", "--flagged", "--sort", "width",
		"--reverse",
	)
	for _, name := range []string{"c1997", "c1998", "c1999"} {
		if !strings.Contains(out, name+" ") {
			t.Errorf("%s is missing: %s", name, out)
		}
	}
	if n := strings.Count(out, "thin:0"); n != 3 {
		t.Errorf("%d communities, want 3: %s", n, out)
	}
	out, _ = mustRun(
		t, "watch", "--url", page.URL(), "--count", "1",
	) // all of them, where there is no terminal
	if n := strings.Count(out, "\n"); n < 2000 {
		t.Errorf("%d lines of 2,000 communities", n)
	}
}

// A missing page, a page of another program and a page that needs a token must each give an
// error with advice.
func TestWatchGivesAdvice(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--url", "http://127.0.0.1:1"}, exitFailed, "start gqlstream run"},
		{[]string{"--url", "nats://x"}, exitUsage, "such as http://127.0.0.1:8090"},
		{[]string{"--every", "1ms"}, exitUsage, "less than"},
		{
			[]string{"--url", watchedPage(t, "127.0.0.1:0", 1).URL(), "--class", "rigth"},
			exitUsage,
			"is not one of left, right",
		},
	} {
		var said strings.Builder
		ctx, cancel := context.WithCancel(t.Context())
		if c.code == exitFailed { // is waited for
			time.AfterFunc(3*serverLookEvery, cancel)
		}
		code := execute(
			ctx,
			append([]string{"watch", "--count", "1"}, c.args...),
			console{Out: io.Discard, Err: &said},
		)
		if cancel(); code != c.code || !strings.Contains(said.String(), c.want) {
			t.Errorf("%v: exit %d, %q", c.args, code, said.String())
		}
	}
}

// The table must name class and communities, and no name may steer the terminal.
func TestWatchTableNamesClassAndCommunities(t *testing.T) {
	w := &watch{base: "http://127.0.0.1:8090", watchCmd: watchCmd{Sort: "name"}}
	w.info.Classes = []string{"left", "right"}
	w.list.Communities = []watchRow{
		{
			Name:    "a\x1b",
			Updated: time.Now().Add(time.Hour),
			Estimate: quant.Estimate{
				Prevalence: []float64{0.2, 0.8},
				Low:        []float64{0.1, 0.7},
				High:       []float64{0.3, 1},
				Moved:      []float64{-0.012, 0.012},
				SEChange:   []float64{0.004, 0.004},
				Revised:    []float64{0.005, -0.005},
				SERevised:  []float64{0.001, 0.001},
				Members:    1e6,
				Flags:      []string{"thin:0"},
			},
		},
		{Name: "small", Estimate: quant.Estimate{Suppressed: true}},
	}
	text := strings.Join(w.lines(), "\n")
	row := "a?         1,000,000  0.200          [0.100 0.300]  -0.012 ±0.004  +0.005 ±0.001  0s"
	for _, want := range []string{"share of left", row, "thin:0", "small      suppressed"} {
		if !strings.Contains(text, want) || strings.Contains(text, "\x1b") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
