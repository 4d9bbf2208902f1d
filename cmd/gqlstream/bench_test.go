package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"gqlstream/bench"
	"gqlstream/config"
)

// The smallest run must give a JSON object for every row of the goals, each with a
// finite, positive figure. Figures are not held against the goals: the machine that
// tests is not the machine that measures.
func TestBenchGivesARowForEveryGoal(t *testing.T) {
	out, diagnostics := mustRun(t, "bench", "--quick", "--json",
		"--vertices", "1000", "--edges", "8000", "--seed", "3", "--dir", t.TempDir())
	rows := map[string]bool{}
	for line := range strings.Lines(out) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, key := range []string{"name", "value", "unit", "goal", "met", "reference"} {
			if _, ok := fields[key]; !ok {
				t.Errorf("no %s in %s", key, line)
			}
		}
		value, _ := fields["value"].(float64)
		if !(value > 0) || math.IsInf(value, 0) || fields["unit"] == "" {
			t.Errorf("row without a figure: %s", line)
		}
		rows[fields["name"].(string)] = true
	}
	for _, name := range []string{
		"update", "recompute", "ingest", "json", "memory", "restart", "certificate", "loading", "live/2/12", "live/20/10000",
	} {
		if !rows[name] {
			t.Errorf("no row %s", name)
		}
	}
	if len(strings.Split(diagnostics, "\n")) < len(bench.Measures()) {
		t.Errorf("progress is\n%s", diagnostics)
	}
}

// A table must say of every figure whether its goal is met, and mistakes are the
// user's to mend.
func TestBenchTableAndMistakes(t *testing.T) {
	out, _ := mustRun(t, "bench", "--quick", "--vertices", "1000", "--edges", "8000", "--only", "update,memory")
	for _, want := range []string{"NAME", "us cpu/event", "<= 10", "size", "update: 1000 vertices"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\nlive") {
		t.Errorf("a measure ran that was not asked for:\n%s", out)
	}
	for _, args := range [][]string{{"--only", "nothing"}, {"--vertices", "5"}, {"--edges", "3"}, {"--vertices", "200", "--edges", "19000"}} {
		if code, _, text := runCommand(append([]string{"bench"}, args...)...); code != exitUsage || text == "" {
			t.Errorf("%v: exit %d, %s", args, code, text)
		}
	}
}

// Numbers in the table have three digits, or all before the point.
func TestBenchNumbers(t *testing.T) {
	for x, want := range map[float64]string{1234567: "1234567", 12.345: "12.3", 0.0012345: "0.00123", 100: "100"} {
		if got := benchNumber(x); got != want {
			t.Errorf("%v is printed as %s, want %s", x, got, want)
		}
	}
	if err := writeBench(failing{}, []bench.Row{{Name: "x"}}); err == nil {
		t.Error("a failing writer went unnoticed")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFailing }

var errFailing = config.Usagef("closed")
