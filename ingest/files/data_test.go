//go:build data

package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// dataDir is where the real graphs are: $GQLSTREAM_DATA, or ../shared/data from
// the root of the project.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GQLSTREAM_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("the real graphs are missing: set GQLSTREAM_DATA to their folder: %v", err)
	}
	return dir
}

// The five real graphs load whole: the counts are those of their meta.json.
func TestRealGraphsLoadWhole(t *testing.T) {
	leakCheck(t)
	for _, name := range []string{
		"coraml", "citeseer", "musae_twitch", "icwsm_political",
		"sp_workplace2015",
	} {
		dir := filepath.Join(dataDir(t), name)
		var meta struct {
			N          int   `json:"n"`
			M          int   `json:"m"`
			K          int   `json:"K"`
			Histogram  []int `json:"class_histogram"`
			Unlabelled int   `json:"unlabelled"`
			Events     int   `json:"events"`
			Attributes []string
		}
		if err := json.Unmarshal([]byte(readFile(t, filepath.Join(dir, "meta.json"))),
			&meta); err != nil {
			t.Fatal(err)
		}
		vertices := filepath.Join(dir, "vertices.csv.gz")
		got := merged(readAll(t, Config{Inputs: []Input{
			{Path: filepath.Join(dir, "edges.csv.gz"), Kind: event.KindEdge},
			{Path: vertices, Kind: event.KindLabel},
			{Path: vertices, Kind: event.KindVertex},
		}}))
		if len(got.Refused) > 0 {
			t.Fatalf("%s: refused %d, first %+v", name, len(got.Refused), got.Refused[0])
		}
		labels := meta.N - meta.Unlabelled // a cell of nothing, or -1, says nothing
		if len(got.Edges) != meta.M || len(got.Labels) != labels || len(got.Vertices) != meta.N {
			t.Errorf("%s: %d edges, %d labels, %d vertices, want %d, %d, %d", name,
				len(got.Edges), len(got.Labels), len(got.Vertices), meta.M, labels, meta.N)
		}
		histogram := make([]int, meta.K)
		for _, l := range got.Labels {
			histogram[l.Class]++
		}
		for k, n := range histogram {
			if n != meta.Histogram[k] {
				t.Errorf("%s: %d of class %d, want %d", name, n, k, meta.Histogram[k])
			}
		}
		if meta.Events > 0 {
			checkRealEvents(t, filepath.Join(dir, "events.csv.gz"), meta.Events)
		}
	}
}

// checkRealEvents reads interactions in the order of time.
func checkRealEvents(t *testing.T, path string, want int) {
	t.Helper()
	steps := readAll(t, Config{
		Inputs: []Input{{Path: path, Kind: event.KindEdge}}, Steps: ingest.StepConfig{Every: -1},
	})
	count, last := 0, event.Time(0)
	for _, b := range steps {
		for _, e := range b.Edges {
			if e.Time == 0 || e.Time < last {
				t.Fatalf("%s: edge %d is at %v after %v", path, count, e.Time, last)
			}
			last, count = e.Time, count+1
		}
		for _, r := range b.Refused {
			if r.Reason != event.SelfLoop {
				t.Fatalf("%s: refused %+v", path, r)
			}
			count++
		}
	}
	if count != want {
		t.Errorf("%s: %d events, want %d", path, count, want)
	}
}
