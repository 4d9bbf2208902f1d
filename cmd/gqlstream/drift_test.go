package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/incremental/prequential"
	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
)

// followDrift runs a simulated network. From half of the time on its classifier predicts a
// share of the vertices wrongly. It returns the time of the first flag, zero if there was
// none, and the number of judged labels at half of the time and at the end.
func followDrift(
	t *testing.T,
	seed uint64,
	share float64,
) (raised time.Duration, half, all uint64) {
	t.Helper()
	c := simulate.DefaultConfig()
	c.Seed, c.Vertices, c.Duration, c.LabelShare, c.LabelDelay = seed, 6_000, 4*time.Minute, 1,
		8*time.Second
	c.InitialShare, c.Activity, c.PredictionDelay = 0.1, 50, time.Second
	c.LabelRate, c.PostRate = 0, 50
	c.DegradeAt, c.DegradeShare = 2*time.Minute, share
	source, err := simulate.New(c)
	if err != nil {
		t.Fatal(err)
	}
	core, err := incremental.New(incremental.Config{
		Classes: c.Classes, Communities: []graphstore.Rule{{
			Name: "all",
			Kind: graphstore.Everyone,
		}},
		Estimates: []quant.Options{{Method: "pacc", Confidence: 0.9}}, Kernel: "constant",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	var batch event.Batch
	for {
		err := source.Next(context.Background(), &batch)
		if err == io.EOF {
			return raised, half, all
		}
		if err != nil {
			t.Fatal(err)
		}
		at := time.Duration(int64(batch.Time) - c.Start.UnixNano())
		flagged := slices.ContainsFunc(
			core.Judged(),
			func(v prequential.Version) bool { return v.Degraded },
		)
		batch.Emit = flagged && raised == 0 // a core that never emits costs nothing
		if batch.Emit {
			raised = at
		}
		for _, e := range core.Step(&batch).Estimates {
			if !slices.Contains(e.Flags, quant.FlagDrift) {
				t.Errorf("seed %d: the record has the flags %v", seed, e.Flags)
			}
		}
		for _, v := range core.Judged() {
			all = v.Last
		}
		if at < c.DegradeAt {
			half = all
		}
	}
}

// On the simulator the flag must be raised soon after the classifier has become worse,
// and not before nor without.
func TestADegradedClassifierIsFlagged(t *testing.T) {
	for seed := range uint64(3) {
		raised, half, all := followDrift(t, seed, 0.3)
		t.Logf(
			"seed %d: %d labels judged before, %d after; flagged at %v", seed, half, all-half,
			raised,
		)
		if half < 1_000 || raised < 2*time.Minute || raised > 3*time.Minute {
			t.Errorf(
				"seed %d: flagged at %v, after %d labels in the first two minutes", seed, raised,
				half,
			)
		}
		if raised, _, _ := followDrift(t, seed, 0); raised != 0 {
			t.Errorf("seed %d: flagged at %v, and nothing was wrong", seed, raised)
		}
	}
}

// The command that makes such a log must read back as one.
func TestSimulateCanDegrade(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log.ndjson")
	mustRun(
		t, "simulate", "--vertices", "300", "--duration", "20s", "--degrade-at", "10s",
		"--degrade-share", "1", "--out", log,
	)
	out, _ := mustRun(t, "replay", "--classes", "2", "--everyone", "--method", "pcc", "--log", log)
	var e quant.Estimate
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&e); err != nil || e.Community == "" {
		t.Fatalf("%v: %s", err, out)
	}
	if code, _, _ := runCommand("simulate", "--degrade-share", "2", "--out", log); code == 0 {
		t.Error("a share of 2")
	}
}
