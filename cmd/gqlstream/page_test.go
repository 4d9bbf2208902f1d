package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/internal/testfile"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
	"gqlstream/sinks/web"
)

// restarted opens the pipeline of a state directory with a page, as run does.
func restarted(t *testing.T, state, conf, listen string) *pipeline.Pipeline {
	t.Helper()
	settings, err := config.Load(conf)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.HTTP.Listen = state, listen
	p, err := pipeline.Open(t.Context(), settings, pipeline.Options{
		Out: io.Discard, Log: slog.New(slog.DiscardHandler), FreePort: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func fetch(t *testing.T, p *pipeline.Pipeline, path string, into any) {
	t.Helper()
	response, err := http.Get(strings.TrimSuffix(p.Page.URL(), "/") + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil ||
		response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, response.Status, err)
	}
}

// After a restart the page must show the latest estimate of every community, how it is defined and,
// of each, the whole series that was published before, although nothing comes.
func TestThePageHasItsPastAfterARestart(t *testing.T) {
	state, conf, records := savedState(t, 7)
	published := map[[2]string][]uint64{}
	var times []string
	for _, text := range records {
		var e quant.Estimate
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		key := [2]string{e.Community, e.Method}
		published[key] = append(published[key], e.Position)
		if key == [2]string{"everyone", "auto"} {
			times = append(times, e.Time)
		}
	}
	p := restarted(t, state, conf, "127.0.0.1:0")
	var list struct{ Total int }
	names := map[string]bool{}
	for key := range published {
		names[key[0]] = true
	}
	for begun := time.Now(); list.Total != len(names) ||
		list.Total == 0; pause(t.Context(), 10*time.Millisecond) {
		if fetch(t, p, "/api/v1/communities", &list); time.Since(begun) > crashStartMax {
			t.Fatalf("the page has %d communities, %d were published", list.Total, len(names))
		}
	}
	var german struct{ Definition string }
	if fetch(t, p, "/api/v1/communities/german", &german); german.Definition != `language == "de"` {
		t.Errorf("a community by rule is defined by %q", german.Definition)
	}
	positions := func(query string) (out []uint64) {
		var answer struct{ Estimates []quant.Estimate }
		fetch(t, p, "/api/v1/communities/everyone/estimates?method=auto"+query, &answer)
		for _, e := range answer.Estimates {
			out = append(out, e.Position)
		}
		return out
	}
	want := published[[2]string{"everyone", "auto"}]
	if got := positions(""); !slices.Equal(got, want) || len(want) < 5 {
		t.Errorf("the series has the positions %v, published were %v", got, want)
	}
	if got := positions("&from=" + times[1] + "&to=" + times[3]); !slices.Equal(got, want[1:4]) {
		t.Errorf("from the second to the fourth the series has %v, published were %v", got, want)
	}
}

// mustHaveTrend checks that a restarted pipeline shows the movement of the day before.
func mustHaveTrend(t *testing.T, state, conf string) {
	t.Helper()
	p := restarted(t, state, conf, "127.0.0.1:0")
	var list struct {
		Communities []struct {
			Trend  []float64
			Change *float64
		}
	}
	for begun := time.Now(); len(list.Communities) == 0 || len(list.Communities[0].Trend) < 2 ||
		list.Communities[0].Change == nil; pause(t.Context(), 10*time.Millisecond) {
		if fetch(t, p, "/api/v1/communities?q=everyone&sort=change&trend=24", &list); time.Since(
			begun,
		) > crashStartMax {
			t.Fatalf("after a restart the page has no trend: %+v", list)
		}
	}
}

// Where the port of the page is taken, demo must take another one and say so.
func TestAPageFindsAFreePort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	state, conf, _ := savedState(t, 8)
	code, _, said := runCommand(
		"run", "--config", conf, "--state", state, "--http", taken.Addr().String(),
		"--exit-when-drained",
	)
	if code != exitFailed || !strings.Contains(said, "choose another address with --http") {
		t.Errorf("run: exit %d\n%s", code, said)
	}
	p := restarted(t, state, conf, taken.Addr().String())
	if p.Taken != taken.Addr().String() || p.Page.Addr().String() == p.Taken {
		t.Errorf("the page is at %v, taken is %q", p.Page.Addr(), p.Taken)
	}
}

// The page must have the alerts that are stored, each once, also in a run that begins before
// the last of them.
func TestThePageHasAlertsOnce(t *testing.T) {
	state, config, _ := savedState(t, 7)
	stored := len(alertsOf(t, state))
	removeCheckpoints(t, state, 1)
	p := restarted(t, state, config, "127.0.0.1:0")
	var answer struct{ Transitions []alerts.Transition }
	for deadline := time.Now().Add(20 * time.Second); len(answer.Transitions) < stored &&
		time.Now().Before(deadline); {
		fetch(t, p, "/api/v1/alerts", &answer)
	}
	if n := len(answer.Transitions); n == 0 || n != stored {
		t.Errorf("the run begins after %d, the page has %d alerts of %d", p.Position(), n, stored)
	}
}

// The page must show the newest refusals with the refused events, and those of one reason
// on request.
func TestThePageShowsRefusedEvents(t *testing.T) {
	for _, floor := range []int{0, 11} {
		t.Run(fmt.Sprint("floor ", floor), func(t *testing.T) { showRefusals(t, floor) })
	}
}

func showRefusals(t *testing.T, floor int) {
	t.Helper()
	state := t.TempDir()
	settings := config.Settings{
		Classes: config.Classes{"a", "b"},
		State:   state,
		HTTP:    web.HTTP{Listen: "127.0.0.1:0"},
		Privacy: config.Privacy{MembersMin: &floor},
	}
	p, err := pipeline.Open(
		t.Context(),
		settings,
		pipeline.Options{Out: io.Discard, Log: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var at []uint64
	for _, text := range []string{
		`{"src": 1, "dst": 1}`, `{"src": 1, "dst": 2, "weight": "ü"}`,
		`{"src": 1, "dst": 2, "weight": -1}`,
	} {
		ack, err := p.Broker.JS.Publish(ctx, "gql.edge", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, ack.Sequence)
	}
	type answer struct{ Entries []web.QuarantineEntry }
	var all, loops answer
	for deadline := time.Now().Add(20 * time.Second); len(all.Entries) < 3 &&
		time.Now().Before(deadline); {
		all = answer{}
		fetch(t, p, "/api/v1/quarantine", &all)
	}
	want := `{"src": 1, "dst": 2, "weight": "ü"}`
	if floor > 1 {
		want = "" // readers of the page must not see posts of a person
	}
	if len(all.Entries) != 3 || uint64(all.Entries[0].Position) != at[2] ||
		all.Entries[1].Original != want ||
		floor > 1 && strings.Contains(all.Entries[1].Detail, "ü") {
		t.Errorf("the page has %+v", all.Entries)
	}
	fetch(t, p, "/api/v1/quarantine?reason=self-loop&limit=1", &loops)
	if len(loops.Entries) != 1 || loops.Entries[0].Reason != "self-loop" ||
		uint64(loops.Entries[0].Position) != at[0] {
		t.Errorf("of self-loops the page has %+v", loops.Entries)
	}
	cancel()
	<-ended
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// A restart without new events must know what the checkpoint has: the page speaks of an old log,
// and not of a live or an empty one.
func TestThePageKnowsAnOldLogAfterARestart(t *testing.T) {
	dir := t.TempDir()
	state, conf := filepath.Join(dir, "state"), filepath.Join(dir, "c.yaml")
	posts := filepath.Join(dir, "posts.csv")
	testfile.Write(t, conf, "classes: 2\nstep: {time: event}\n")
	testfile.Write(
		t,
		posts,
		"author,class,time\na,0,2026-05-01T00:00:00Z\nb,1,2026-05-02T00:00:00Z\n",
	)
	mustRun(t, "publish", "--posts", posts, "--classes", "2", "--state", state)
	mustRun(t, "run", "--config", conf, "--state", state, "--exit-when-drained")
	p := restarted(t, state, conf, "127.0.0.1:0")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var status struct {
		Pushed   string
		LogTime  string `json:"log_time"`
		Graph    struct{ Vertices int }
		Headline struct{ Text string }
	}
	for begun := time.Now(); status.Pushed == ""; pause(t.Context(), 10*time.Millisecond) {
		if fetch(t, p, "/api/v1/status", &status); time.Since(begun) > crashStartMax {
			t.Fatal("the page has no status")
		}
	}
	if status.LogTime != "2026-05-02T00:00:00Z" || status.Graph.Vertices != 2 ||
		!strings.Contains(status.Headline.Text, "The whole log is read. Its newest event is ") {
		t.Errorf("status %+v", status)
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
