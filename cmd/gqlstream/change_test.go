package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/internal/testfile"
	"gqlstream/quant"
)

// While opinions stand still and edges and predictions come and go, an estimate must move by about
// its se_change. When opinions jump, the records of the ten seconds after must move together by
// three times the error of their sum or more: people post one after the other. Moved and revised
// add up to the change.
func TestErrorsOfAChangeInAQuietNetwork(t *testing.T) {
	const jumpAt, warm = 60 * time.Second, 20 * time.Second
	dir := t.TempDir()
	log, config := filepath.Join(dir, "log.ndjson"), filepath.Join(dir, "gqlstream.yaml")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mustRun(
		t, "simulate", "--seed", "5", "--vertices", "1500", "--communities", "4", "--activity",
		"300", "--label-share", "0.15", "--drift", "0", "--jump-every", jumpAt.String(),
		"--duration", "70s", "--out", log,
	)
	testfile.Write(
		t,
		config,
		"{classes: 2, communities: [{name: everyone, everyone: true}], step: {emit_every: 1s}, "+
			"emit: {threshold: 0}}",
	)
	out, _ := mustRun(t, "replay", "--config", config, "--log", log)
	before := map[string]quant.Estimate{}
	var still, n, most float64
	type movement struct{ moved, squares float64 }
	jumped := map[string]movement{}
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
				sum := jumped[e.Community]
				sum.moved, sum.squares = sum.moved+e.Moved[0],
					sum.squares+e.SEChange[0]*e.SEChange[0]
				jumped[e.Community] = sum
				most = max(most, math.Abs(sum.moved)/math.Sqrt(sum.squares))
			}
		}
		before[e.Community] = e
	}
	t.Logf(
		"%.0f changes of %.2f standard errors (root of mean square), "+
			"the sum after the jump of %.1f",
		n,
		math.Sqrt(still/n),
		most,
	)
	if sd := math.Sqrt(still / n); n < 100 || sd < 0.5 || sd > 2 || most < 3 {
		t.Error("want 0.5 to 2, and 3 or more")
	}
}
