package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/quant"
)

// While opinions stand still and edges and predictions come and go, an estimate must move
// by about its se_change; when opinions jump, by many times that. Moved and revised add up to the change.
func TestErrorsOfAChangeAreThoseOfANetworkThatStandsStill(t *testing.T) {
	const jumpAt, warm = 60 * time.Second, 20 * time.Second
	dir := t.TempDir()
	log, config := filepath.Join(dir, "log.ndjson"), filepath.Join(dir, "gqlstream.yaml")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mustRun(
		t,
		"simulate",
		"--seed",
		"5",
		"--vertices",
		"1500",
		"--communities",
		"4",
		"--activity",
		"300",
		"--label-share",
		"0.15",
		"--drift",
		"0",
		"--jump-every",
		jumpAt.String(),
		"--duration",
		"70s",
		"--out",
		log,
	)
	writeConfig(
		t,
		config,
		"{classes: 2, communities: [{name: everyone, everyone: true}], step: {emit_every: 1s}, emit: {threshold: 0}}",
	)
	out, _ := mustRun(t, "replay", "--config", config, "--log", log)
	before := map[string]quant.Estimate{}
	var still, n, most float64
	for line := range strings.Lines(out) {
		var e quant.Estimate
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil {
			t.Fatal(err)
		}
		if last, known := before[e.Community]; known && at.Sub(start) > warm {
			change := e.Prevalence[0] - last.Prevalence[0]
			if x := e.Moved[0] + e.Revised[0]; math.Abs(x-change) > 1e-15 {
				t.Fatalf("moved %v, revised %v, the change is %v", e.Moved[0], e.Revised[0], change)
			}
			z := e.Moved[0] / max(e.SEChange[0], 1e-9)
			if at.Sub(start) < jumpAt {
				still, n = still+z*z, n+1
			} else {
				most = max(most, math.Abs(z))
			}
		}
		before[e.Community] = e
	}
	t.Logf(
		"%.0f changes of %.2f standard errors (root of mean square), the largest after the jump of %.1f",
		n,
		math.Sqrt(still/n),
		most,
	)
	if sd := math.Sqrt(still / n); n < 100 || sd < 0.5 || sd > 2 || most < 5 {
		t.Error("want 0.5 to 2, and 5 or more")
	}
}
