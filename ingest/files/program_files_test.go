package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// programFile is a table of edges that another program wrote (testdata/others.py), and its edges.
type programFile struct {
	File    string
	Rows    int
	Refused int
	Edges   [][4]any // src, dst, weight, time in ns; in the order of time
}

// programFiles returns the tables of a folder.
func programFiles(tb testing.TB, folder string) (all []programFile) {
	tb.Helper()
	file, err := os.Open(filepath.Join(folder, "want.ndjson"))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		var f programFile
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&f); err != nil {
			tb.Fatal(err)
		}
		all = append(all, f)
	}
}

// programFolders are the tables that the tests read, and those of $GQLSTREAM_FILES: a campaign
// makes them with another seed.
func programFolders() []string {
	folders := []string{filepath.Join("testdata", "others")}
	if more := os.Getenv("GQLSTREAM_FILES"); more != "" {
		folders = append(folders, more)
	}
	return folders
}

// Tables of pyarrow, pandas, Polars, DuckDB, fastparquet and Spark have the edges that were
// written.
func TestFilesOfOtherPrograms(t *testing.T) {
	for _, folder := range programFolders() {
		for _, f := range programFiles(t, folder) {
			path := filepath.Join(folder, f.File)
			source, err := NewSource(Config{
				Inputs: []Input{{Path: path, Kind: event.KindEdge}}, Zone: time.UTC,
			})
			if err != nil {
				t.Errorf("%s: %v", f.File, err)
				continue
			}
			var got []string
			var refused []event.Refusal
			if err := drain(source, func(b *event.Batch) {
				refused = append(refused, b.Refused...)
				for _, e := range b.Edges {
					got = append(got, fmt.Sprint(e.Src, e.Dst, e.Weight, int64(e.Time)))
				}
			}); err != nil {
				t.Errorf("%s: %v", f.File, err)
			}
			if rows := source.Tallies()[0].Rows; rows != f.Rows || len(refused) != f.Refused ||
				len(got) != len(f.Edges) {
				t.Errorf("%s: %d rows, %d refused, %d edges; want %d, %d, %d; %v", f.File,
					rows, len(refused), len(got), f.Rows, f.Refused, len(f.Edges), refused)
				source.Close()
				continue
			}
			for i, e := range f.Edges {
				weight, _ := e[2].(json.Number).Float64()
				at, _ := e[3].(json.Number).Int64()
				want := fmt.Sprint(
					event.ParseID(e[0].(string)), event.ParseID(e[1].(string)), weight, at,
				)
				if got[i] != want {
					t.Errorf("%s: edge %d is %s, want %s", f.File, i, got[i], want)
					break
				}
			}
			source.Close()
		}
	}
}
