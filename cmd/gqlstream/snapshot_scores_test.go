package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Scores of a checkpoint whose engine kept no kernels must be those that one has which
// did, within both certificates.
func TestScoresDoNotDependOnTheEngine(t *testing.T) {
	each := map[string]map[string]map[string]float64{} // by engine, community, vertex
	for _, engine := range []string{"primal", "dual"} {
		state, dir := t.TempDir(), t.TempDir()
		config, out := filepath.Join(dir, "gqlstream.yaml"), filepath.Join(dir, "scores.csv")
		writeConfig(t, config, "{classes: [left, right], engine: "+engine+", communities: [{name: everyone, everyone: true}], alpha: 0.2}")
		data := filepath.Join("..", "..", "examples", "data")
		mustRun(t, "publish", "--state", state, "--classes", "left,right", "--edges", filepath.Join(data, "edges.csv"), "--labels", filepath.Join(data, "labels.csv"),
			"--predictions", filepath.Join(data, "predictions.csv"), "--members", filepath.Join(data, "members.csv"))
		mustRun(t, "run", "--config", config, "--state", state, "--exit-when-drained")
		mustRun(t, "snapshot", "export", "--state", state, "--table", "scores", "--alpha", "0.2", "--out", out)
		each[engine] = scoresIn(t, out)
	}
	if len(each["primal"]) < 2 || len(each["dual"]) != len(each["primal"]) {
		t.Fatalf("scores of %d and %d communities", len(each["primal"]), len(each["dual"]))
	}
	for community, scores := range each["primal"] {
		apart := 0.0
		for vertex, score := range scores {
			apart += math.Abs(score - each["dual"][community][vertex])
		}
		if apart > 2*(0.01+scoreTolerance) {
			t.Errorf("the scores of %s are %v apart", community, apart)
		}
	}
	code, _, said := runCommand("snapshot", "export", "--state", t.TempDir(), "--table", "scores", "--alpha", "2", "--out", "x.csv")
	if code == exitFine || !strings.Contains(said, "no checkpoint") && !strings.Contains(said, "alpha") {
		t.Errorf("exit %d: %s", code, said)
	}
}

func scoresIn(t *testing.T, path string) map[string]map[string]float64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]float64{}
	for _, row := range rows[1:] {
		score, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if out[row[0]] == nil {
			out[row[0]] = map[string]float64{}
		}
		out[row[0]][row[1]] = score
	}
	return out
}
