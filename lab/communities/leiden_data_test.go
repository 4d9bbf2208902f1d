//go:build data

package communities

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// realEdges reads the edges of one of the real graphs, which are in $GQLSTREAM_DATA or in
// ../shared/data from the root of the project.
func realEdges(t *testing.T, name string) (edges []edge) {
	t.Helper()
	dir := os.Getenv("GQLSTREAM_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	file, err := os.Open(filepath.Join(dir, name, "edges.csv.gz"))
	if err != nil {
		t.Fatalf("the real graphs are missing: set GQLSTREAM_DATA to their folder: %v", err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(unpacked).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		src, err := strconv.ParseUint(row[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		dst, err := strconv.ParseUint(row[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		edges = append(edges, edge{src, dst, 1})
	}
	return edges
}

func TestModularityIsThatOfGonumOnRealGraphs(t *testing.T) {
	for _, name := range []string{"coraml", "citeseer"} {
		compareWithGonum(t, name, storeOf(t, realEdges(t, name)), 1)
	}
}
