package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
	"gqlstream/sinks/alerts"
)

// alertsOf returns the transitions of GQL_ALERTS as JSON.
func alertsOf(t *testing.T, state string) (out []string) {
	t.Helper()
	r := &crashRun{t: t, dir: state}
	withBroker(t, state, func(js jetstream.JetStream) {
		r.eachMessage(js, defaultNames().Alerts, func(m jetstream.Msg) {
			out = append(out, string(m.Data()))
		})
	})
	return out
}

// runAlerts publishes random messages and runs until they are drained.
func runAlerts(t *testing.T, state, config string, events *crashEvents) {
	t.Helper()
	publishRandom(t, state, events, 60)
	mustRun(t, "run", "--config", config, "--state", state, "--exit-when-drained")
}

// A replay must give the alerts that run gave, and a webhook must have got every one of them, once
// and in order.
func TestReplayGivesTheAlertsThatWebhooksGot(t *testing.T) {
	const seed = 3
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Webhook-Id"))
	}))
	defer server.Close()
	state, config := t.TempDir(), filepath.Join(t.TempDir(), "gqlstream.yaml")
	testfile.Write(
		t,
		config,
		oneCheckpointARun+"notify: {webhooks: [{name: a, url: "+server.URL+"}]}\n",
	)
	events := &crashEvents{rand: rand.New(rand.NewPCG(seed, 12))}
	runAlerts(t, state, config, events)
	events.nobodyErased = true // or the checkpoint that the replay begins with is dropped
	runAlerts(t, state, config, events)
	published := alertsOf(t, state)
	if len(published) < 10 || len(got) != len(published) {
		t.Fatalf("seed %d: %d transitions, %d delivered", seed, len(published), len(got))
	}
	for i, line := range published {
		var x alerts.Transition
		if err := json.Unmarshal([]byte(line), &x); err != nil || x.ID != got[i] {
			t.Fatalf("seed %d: transition %d is %s, delivered %s: %v", seed, i, x.ID, got[i], err)
		}
	}
	replayed, _ := mustRun(t, "replay", "--config", config, "--state", state, "--alerts")
	sameLines(t, "replay", replayed, published)
	code, _, said := runCommand(
		"replay", "--config", config, "--state", state, "--alerts", "--use-checkpoint",
	)
	if code != exitUsage || !strings.Contains(said, "without --use-checkpoint") {
		t.Errorf("alerts from a checkpoint: exit %d\n%s", code, said)
	}
}

func sameLines(t *testing.T, what, got string, want []string) {
	t.Helper()
	counts := map[string]int{}
	n := 0
	for line := range strings.Lines(got) {
		counts[strings.TrimSuffix(line, "\n")]++
		n++
	}
	for _, line := range want {
		if counts[line] != 1 {
			t.Errorf("%s: %d times %s", what, counts[line], line)
		}
	}
	if n != len(want) {
		t.Errorf("%s: %d lines, want %d", what, n, len(want))
	}
}

// Rules that change between two runs must hold from the end of the log on. A start from an
// older checkpoint must repeat the alerts of the old rules for the messages before it.
func TestChangedRulesHoldFromTheEndOfTheLog(t *testing.T) {
	const seed = 5
	state, config := t.TempDir(), filepath.Join(t.TempDir(), "gqlstream.yaml")
	before, _, _ := strings.Cut(crashConfig, "alerts:")
	testfile.Write(t, config, crashConfig)
	events := &crashEvents{rand: rand.New(rand.NewPCG(seed, 12))}
	runAlerts(t, state, config, events)
	first := alertsOf(t, state)
	changed := before + "alerts:\n  - {name: high, when: point > 0.3, suppress: []}\n  - {name: " +
		"new, when: point < 0.6, suppress: []}\n"
	testfile.Write(t, config, changed)
	mustRun(t, "run", "--config", config, "--state", state, "--exit-when-drained")
	under := len(alertsOf(t, state)) // alerts under the old rules
	runAlerts(t, state, config, events)
	all := alertsOf(t, state)
	var gone, fresh int
	for i, line := range all {
		if i < len(first) {
			if line != first[i] {
				t.Errorf("transition %d has changed:\n%s\n%s", i, first[i], line)
			}
		}
		var x alerts.Transition
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		switch {
		case x.Rule == "new":
			fresh++
		case x.Reason == "the rule was removed":
			gone++
		case x.Rule != "high" && i >= under:
			t.Errorf("rule %s: %s", x.Rule, line)
		}
	}
	if gone == 0 || fresh == 0 {
		t.Errorf("seed %d: %d were removed, %d are of the new rule", seed, gone, fresh)
	}
	// Without its newest checkpoints a start goes through the change again.
	removeCheckpoints(t, state, 1)
	mustRun(t, "run", "--config", config, "--state", state, "--exit-when-drained")
	again := alertsOf(t, state)
	if len(again) < len(all) || strings.Join(again[:len(all)], "\n") != strings.Join(all, "\n") {
		t.Errorf(
			"seed %d: a start from an older checkpoint has changed the alerts: %d, were %d", seed,
			len(again), len(all),
		)
	}
}

// removeCheckpoints keeps only the oldest few.
func removeCheckpoints(t *testing.T, state string, keep int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(state, "checkpoints", "*"))
	if err != nil || len(names) <= keep {
		t.Fatalf("checkpoints %v: %v", names, err)
	}
	for _, name := range names[keep:] {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
}

// A change of the configuration that decides results makes the run read the log again. No
// alert may begin a second time, and firing alerts must go on.
func TestAlertsGoOnWhenTheLogIsReadAgain(t *testing.T) {
	const seed = 7
	state, config := t.TempDir(), filepath.Join(t.TempDir(), "gqlstream.yaml")
	testfile.Write(t, config, crashConfig)
	events := &crashEvents{rand: rand.New(rand.NewPCG(seed, 12))}
	runAlerts(t, state, config, events)
	first := alertsOf(t, state)
	testfile.Write(t, config, strings.Replace(crashConfig, "{method: pcc}", "{method: cc}", 1))
	mustRun(
		t, "run", "--config", config, "--state", state, "--exit-when-drained",
		"--accept-new-config",
	)
	runAlerts(t, state, config, events)
	all := alertsOf(t, state)
	last := map[string]alerts.State{}
	for i, line := range all {
		var x alerts.Transition
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if i < len(first) && line != first[i] || x.State == last[x.Alert] {
			t.Errorf("seed %d: transition %d is %s after %s", seed, i, line, last[x.Alert])
		}
		last[x.Alert] = x.State
	}
	if len(all) == len(first) {
		t.Errorf("seed %d: nothing happened afterwards", seed)
	}
}
