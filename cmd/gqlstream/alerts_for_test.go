package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/internal/testfile"
	"gqlstream/sinks/alerts"
)

// A rule with for must fire with the default method and the default of suppress, although
// coefficients of the posterior are fitted again in between, and say so in one text.
func TestARuleWithForFires(t *testing.T) {
	dir := t.TempDir()
	log, conf := filepath.Join(dir, "log.ndjson"), filepath.Join(dir, "gqlstream.yaml")
	mustRun(
		t, "simulate", "--vertices", "1000", "--duration", "30m", "--activity", "1", "--post-rate",
		"1", "--jump-every", "0", "--label-share", "0.3", "--seed", "3", "--out", log,
	)
	testfile.Write(t, conf, `
classes: 2
communities: [{name: everyone, everyone: true}]
step: {time: event, every: 10s, emit_every: 1m}
alerts:
  - {name: always, communities: everyone, classes: "0", when: point > 0, for: 2m}
  - {name: long, communities: everyone, classes: "0", when: point > 0, for: 10m}
`)
	out, _ := mustRun(t, "replay", "--config", conf, "--log", log, "--alerts")
	want := map[string]time.Duration{"always": 2 * time.Minute, "long": 10 * time.Minute}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for line := range strings.Lines(out) {
		var x alerts.Transition
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, x.Time)
		if err != nil || x.State != alerts.Firing {
			t.Fatalf("%+v: %v", x, err)
		}
		if d := at.Sub(start) - want[x.Rule]; d < 0 || d > 2*time.Minute {
			t.Errorf("%s fires at %v", x.Rule, at)
		}
		if !strings.Contains(x.Text, "of everyone is ") ||
			!strings.Contains(x.Text, " % interval ") {
			t.Errorf("%s says %q", x.Rule, x.Text)
		}
		delete(want, x.Rule)
	}
	if len(want) > 0 {
		t.Errorf("in half an hour these never fire: %v", want)
	}
}
