package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Scores of a checkpoint of many communities, which are served by one dual and keep no
// kernels, must be those of one of few communities, which has them, within both certificates.
func TestScoresDoNotDependOnTheEngine(t *testing.T) {
	each := map[string]map[string]map[string]float64{} // by engine, community, vertex
	data := filepath.Join("..", "..", "examples", "data")
	members, err := os.ReadFile(filepath.Join(data, "members.csv"))
	if err != nil {
		t.Fatal(err)
	}
	crowd := string(members)
	for i := range 40 {
		crowd += fmt.Sprintf("crowd-%d,u%d\n", i, i)
	}
	var state, out, last string
	for engine, members := range map[string]string{"primal": string(members), "dual": crowd} {
		dir := t.TempDir()
		last = engine
		state, out = t.TempDir(), filepath.Join(dir, "scores.csv")
		config, list := filepath.Join(dir, "gqlstream.yaml"), filepath.Join(dir, "members.csv")
		writeConfig(t, config, "{classes: [left, right], communities: [{name: everyone, everyone: true}], alpha: 0.2, label_half_life: 1h}")
		writeConfig(t, list, members)
		mustRun(t, "publish", "--state", state, "--classes", "left,right", "--edges", filepath.Join(data, "edges.csv"), "--labels", filepath.Join(data, "labels.csv"),
			"--predictions", filepath.Join(data, "predictions.csv"), "--members", list)
		mustRun(t, "run", "--config", config, "--state", state, "--exit-when-drained")
		mustRun(t, "snapshot", "export", "--state", state, "--table", "scores", "--alpha", "0.2", "--out", out)
		each[engine] = scoresIn(t, out)
	}
	if len(each["primal"]) < 2 || len(each["dual"]) < len(each["primal"])+30 {
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
	flags := []string{"snapshot", "export", "--state", state, "--table", "scores", "--alpha", "0.2", "--out", out}
	mustRun(t, append(flags, "--community", "berlin", "--top", "2")...)
	few, all := scoresIn(t, out), each[last]["berlin"]
	for vertex, score := range few["berlin"] {
		above := 0
		for _, other := range all {
			if other > score {
				above++
			}
		}
		if above > 1 || score != all[vertex] {
			t.Errorf("%s has %v, and %d vertices have more", vertex, score, above)
		}
	}
	if len(few) != 1 || len(few["berlin"]) != 2 {
		t.Errorf("the two largest of berlin are %v", few)
	}
	if code, _, said := runCommand(append(flags, "--community", "nowhere")...); code != exitUsage || !strings.Contains(said, "nowhere") {
		t.Errorf("exit %d: %s", code, said)
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
