package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Two runs with one seed must write the same bytes, of the log and of the truth.
func TestSimulateWritesTheSameBytesForTheSameSeed(t *testing.T) {
	files := func(seed, name string) (log, truth []byte) {
		path := filepath.Join(t.TempDir(), name)
		mustRun(t, "simulate", "--vertices", "500", "--duration", "5s", "--jump-every", "2s",
			"--seed", seed, "--out", path+".ndjson", "--truth", path+".csv")
		log, err := os.ReadFile(path + ".ndjson")
		if err != nil {
			t.Fatal(err)
		}
		truth, err = os.ReadFile(path + ".csv")
		if err != nil {
			t.Fatal(err)
		}
		return log, truth
	}
	log, truth := files("3", "first")
	if again, truthAgain := files("3", "second"); !bytes.Equal(log, again) ||
		!bytes.Equal(truth, truthAgain) {
		t.Error("the same seed gives other bytes")
	}
	if other, _ := files("4", "third"); bytes.Equal(log, other) {
		t.Error("another seed gives the same bytes")
	}
	rows, err := csv.NewReader(bytes.NewReader(truth)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"time", "community", "members", "p0", "p1", "jumped"}; !slices.Equal(
		rows[0],
		want,
	) {
		t.Errorf("truth has the columns %v, want %v", rows[0], want)
	}
	if want := 5*13 + 1; len(
		rows,
	) != want { // seconds times communities and everyone, and the header
		t.Errorf("truth has %d rows, want %d", len(rows), want)
	}
}

// A replay of the log that simulate wrote must estimate every community in it.
func TestReplayEstimatesASimulatedLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.ndjson.zst")
	mustRun(
		t, "simulate", "--vertices", "500", "--communities", "3", "--duration", "3s", "--out", path,
	)
	out, _ := mustRun(t, "replay", "--classes", "2", "--everyone", "--method", "pcc", "--log", path)
	for _, community := range []string{"everyone", "group-0", "group-1", "group-2"} {
		if !strings.Contains(out, fmt.Sprintf("%q", community)) {
			t.Errorf("no estimate of %s", community)
		}
	}
}

// Mistakes in the arguments must end with the code for them and a hint.
func TestSimulateRefusesWrongArguments(t *testing.T) {
	for _, args := range [][]string{
		{"simulate"},
		{"simulate", "--out", filepath.Join(t.TempDir(), "log.csv")},
		{"simulate", "--out", "-", "--duration", "0"},
		{"simulate", "--out", "-", "--vertices", "1"},
		{"simulate", "--out", "-", "--accuracy", "0.3"},
		{"simulate", "--out", "-", "--nats", "nats://127.0.0.1:1"},
		{"demo", "--http", "off", "--speed", "0"},
	} {
		if code, _, diagnostics := runCommand(args...); code != exitUsage {
			t.Errorf("gqlstream %v: exit %d, want %d\n%s", args, code, exitUsage, diagnostics)
		}
	}
}

// The demo must end with the errors of both methods, and leave no files behind.
func TestDemoEndsWithASummaryAndLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	out, _ := mustRun(
		t, "demo", "--http", "off", "--vertices", "2000", "--communities", "3", "--duration", "14s",
		"--speed", "20",
	)
	for _, text := range []string{
		"ours (auto)", "plain counting (pcc)", "truth in our interval",
		"13s of 14s",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("the summary does not have %q:\n%s", text, out)
		}
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v behind (%v)", left, err)
	}
}
