package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gqlstream/alerts"
	"gqlstream/quant"
)

// restarted opens the pipeline of a state directory with a page, as run does.
func restarted(t *testing.T, state, config, listen string) *pipeline {
	t.Helper()
	settings, err := loadConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.HTTP.Listen = state, listen
	p, err := openPipeline(t.Context(), settings, pipelineOptions{
		out: io.Discard, log: slog.New(slog.DiscardHandler), freePort: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func fetch(t *testing.T, p *pipeline, path string, into any) {
	t.Helper()
	response, err := http.Get(strings.TrimSuffix(p.page.URL(), "/") + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, response.Status, err)
	}
}

// After a restart the page must show the latest estimate of every community and, of
// each, the whole series that was published before.
func TestThePageHasItsPastAfterARestart(t *testing.T) {
	state, config, records := savedState(t, 7)
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
	p := restarted(t, state, config, "127.0.0.1:0")
	var list struct{ Total int }
	fetch(t, p, "/api/v1/communities", &list)
	names := map[string]bool{}
	for key := range published {
		names[key[0]] = true
	}
	if list.Total != len(names) || list.Total == 0 {
		t.Errorf("the page has %d communities, %d were published", list.Total, len(names))
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

// Where the port of the page is taken, demo must take another one and say so.
func TestAPageFindsAFreePort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	state, config, _ := savedState(t, 8)
	code, _, said := runCommand("run", "--config", config, "--state", state, "--http", taken.Addr().String(), "--exit-when-drained")
	if code != exitFailed || !strings.Contains(said, "choose another address with --http") {
		t.Errorf("run: exit %d\n%s", code, said)
	}
	p := restarted(t, state, config, taken.Addr().String())
	if p.taken != taken.Addr().String() || p.page.Addr().String() == p.taken {
		t.Errorf("the page is at %v, taken is %q", p.page.Addr(), p.taken)
	}
}

// A run that begins before its last alerts comes to them again: until then the page
// must not have them.
func TestThePageHasAlertsOnce(t *testing.T) {
	state, config, _ := savedState(t, 7)
	stored := len(alertsOf(t, state))
	removeCheckpoints(t, state, 1)
	p := restarted(t, state, config, "127.0.0.1:0")
	var answer struct{ Transitions []alerts.Transition }
	fetch(t, p, "/api/v1/alerts", &answer)
	n := len(answer.Transitions)
	if n == 0 || n == stored || answer.Transitions[0].Position > uint64(p.core.Position()) {
		t.Errorf("the run begins after %d, the page has %d alerts of %d", p.core.Position(), n, stored)
	}
}
