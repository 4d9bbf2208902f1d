package files

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
)

// testTable is a table of one kind as text, with nil for null.
type testTable struct {
	kind    event.Kind
	columns []string
	types   []string // int, float, text, list
	rows    [][]any
	chunk   int // rows of an Arrow record, and of a Parquet row group about; 0: 300
}

// randomTables makes a table of each kind with numeric and textual ids, optional
// values, and names that need quoting in CSV.
func randomTables(r *rand.Rand, n int) []testTable {
	id := func() any {
		names := []string{
			"ann",
			"bob, jr.",
			`"quoted"`,
			"zoë",
			"line",
			"42",
			"18446744073709551615",
		}
		if i := r.IntN(3 * len(names)); i < len(names) {
			return names[i]
		}
		return strconv.Itoa(r.IntN(1000))
	}
	edges := testTable{
		kind: event.KindEdge, columns: []string{"src", "dst", "weight", "time", "op", "ttl"},
		types: []string{"text", "text", "float", "int", "text", "int"},
	}
	labels := testTable{
		kind: event.KindLabel, columns: []string{"vertex", "label", "role", "ttl"},
		types: []string{"int", "int", "text", "int"},
	}
	predictions := testTable{
		kind: event.KindPrediction, columns: []string{"vertex", "p0", "p1", "p2", "version", "ttl"},
		types: []string{"int", "float", "float", "float", "text", "text"},
	}
	members := testTable{
		kind: event.KindMember, columns: []string{"community", "vertex", "multiplicity", "op"},
		types: []string{"text", "text", "int", "text"},
	}
	vertices := testTable{
		kind: event.KindVertex, columns: []string{"id", "language", "views"},
		types: []string{"int", "text", "int"},
	}
	posts := testTable{
		kind: event.KindPost,
		columns: []string{
			"author", "p0", "p1", "p2", "version", "id", "reply_to", "repost_of", "weight", "time",
		},
		types: []string{
			"text", "float", "float", "float", "text", "text", "text", "text", "float", "int",
		},
	}
	for i := range n {
		a, b := id(), id()
		if a == b {
			b = "other"
		}
		edges.rows = append(edges.rows, []any{
			a, b, maybe(r, float64(1+r.IntN(64))/8), maybe(r, int64(1_700_000_000+i)),
			pick(r, nil, "add", "remove"), maybe(r, int64(1+r.IntN(100))),
		})
		labels.rows = append(labels.rows, []any{
			int64(
				r.IntN(1000),
			), pick(r, int64(0), int64(1), int64(2)), pick(r, nil, "train", "calibrate"),
			maybe(r, int64(1+r.IntN(100))),
		})
		p, q := r.IntN(9), r.IntN(9)
		predictions.rows = append(predictions.rows, []any{
			int64(
				r.IntN(1000),
			), float64(p) / 16, float64(q) / 16, float64(16-p-q) / 16, maybe(r, "m,1"),
			pick(r, nil, "36h", "5"),
		})
		posts.rows = append(posts.rows, []any{
			id(), float64(p) / 16, float64(q) / 16, float64(16-p-q) / 16, maybe(r, "m,1"),
			maybe(r, "post "+strconv.Itoa(i)), maybe(r, id()), maybe(r, id()),
			maybe(r, float64(1+r.IntN(64))/8), maybe(r, int64(1_700_000_000+i)),
		})
		members.rows = append(members.rows, []any{
			pick(
				r, "left", "right; \"far\"", "7",
			), id(), maybe(r, int64(r.IntN(5))), pick(r, nil, "join", "leave"),
		})
		vertices.rows = append(vertices.rows, []any{
			int64(r.IntN(1000)), pick(r, nil, "de", "pt-BR", "x y"), maybe(r, int64(r.IntN(1e6))),
		})
	}
	return []testTable{edges, labels, predictions, posts, members, vertices}
}

func maybe(r *rand.Rand, x any) any { return pick(r, x, x, nil) }

func pick(r *rand.Rand, xs ...any) any { return xs[r.IntN(len(xs))] }

func (t testTable) csv() []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	_ = w.Write(t.columns)
	for _, row := range t.rows {
		fields := make([]string, len(row))
		for i, x := range row {
			if x != nil {
				fields[i] = fmt.Sprint(x)
			}
		}
		_ = w.Write(fields)
	}
	w.Flush()
	return out.Bytes()
}

func (t testTable) ndjson() []byte {
	var out bytes.Buffer
	for _, row := range t.rows {
		out.WriteByte('{')
		for i, x := range row {
			if i > 0 {
				out.WriteString(", ")
			}
			value, _ := json.Marshal(x)
			fmt.Fprintf(&out, "%q: %s", t.columns[i], value)
		}
		out.WriteString("}\n")
	}
	return out.Bytes()
}

// writeFile writes data to a file of t.TempDir, compressed as its name says.
func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser = nopCloser{&out}
	switch {
	case strings.HasSuffix(name, ".gz"):
		w = gzip.NewWriter(&out)
	case strings.HasSuffix(name, ".zst"):
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	testfile.Write(t, path, out.Bytes())
	return path
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// readAll reads a whole source into steps that are the caller's to keep.
func readAll(t testing.TB, config Config) []*event.Batch {
	t.Helper()
	source, err := NewSource(config)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var steps []*event.Batch
	for {
		b := new(event.Batch)
		err := source.Next(context.Background(), b)
		if err == io.EOF {
			if b.Events()+len(b.Refused) > 0 {
				t.Fatal("the batch of io.EOF is not empty")
			}
			return steps
		}
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, b)
	}
}

// merged joins steps.
func merged(steps []*event.Batch) *event.Batch {
	var all event.Batch
	for _, b := range steps {
		all.Edges = append(all.Edges, b.Edges...)
		all.Labels = append(all.Labels, b.Labels...)
		all.Predictions = append(all.Predictions, b.Predictions...)
		all.Posts = append(all.Posts, b.Posts...)
		all.Members = append(all.Members, b.Members...)
		all.Vertices = append(all.Vertices, b.Vertices...)
		all.Controls = append(all.Controls, b.Controls...)
		all.Refused = append(all.Refused, b.Refused...)
	}
	return &all
}

func diffSteps(a, b []*event.Batch) string {
	equal := slices.EqualFunc(
		a,
		b,
		func(a, b *event.Batch) bool { // cmp takes its time to find nothing
			return a.First == b.First && a.Last == b.Last && a.Time == b.Time && a.Emit == b.Emit &&
				describe(a) == describe(b)
		},
	)
	if equal {
		return ""
	}
	return cmp.Diff(a, b, cmpopts.IgnoreUnexported(event.Batch{}), cmpopts.EquateEmpty())
}

// leakCheck fails the test if it leaves goroutines behind.
func leakCheck(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// The same rows must give the same steps, whatever the format and compression of the files.
func TestEveryFileFormatGivesTheSameSteps(t *testing.T) {
	leakCheck(t)
	const seed = 3
	tables := randomTables(rand.New(rand.NewPCG(seed, 0)), 400)
	var want []*event.Batch
	for _, format := range []string{
		"csv", "tsv", "ndjson", "jsonl", "parquet", "arrow", "feather",
		"ipc",
	} {
		for _, packed := range []string{"", ".gz", ".zst"} {
			if packed != "" && format != "csv" && format != "tsv" && format != "ndjson" {
				continue // only another name, or packed itself
			}
			config := Config{
				Classes: event.ClassSet{Count: 3},
				Steps:   ingest.StepConfig{EventsMax: 100},
			}
			for _, table := range tables {
				table.chunk = 150
				name := table.kind.String() + "." + format + packed
				path := writeFile(t, name, table.encode(t, format))
				config.Inputs = append(config.Inputs, Input{Path: path, Kind: table.kind})
			}
			got := readAll(t, config)
			if all := merged(got); len(all.Refused) > 0 {
				t.Fatalf("seed %d %s%s: refused %+v", seed, format, packed, all.Refused[0])
			}
			if want == nil {
				want = got
				checkCounts(t, merged(got), 400)
			}
			if diff := diffSteps(want, got); diff != "" {
				t.Fatalf(
					"seed %d: %s%s differs from csv:\n%s", seed, format, packed,
					diff[:min(len(diff), 2000)],
				)
			}
		}
	}
}

func checkCounts(t *testing.T, b *event.Batch, n int) {
	t.Helper()
	for kind, got := range map[string]int{
		"edges": len(b.Edges), "labels": len(b.Labels), "predictions": len(b.Predictions),
		"members": len(b.Members), "vertices": len(b.Vertices),
	} {
		if got != n {
			t.Fatalf("%d %s, want %d", got, kind, n)
		}
	}
}

func (t testTable) encode(tb testing.TB, format string) []byte {
	tb.Helper()
	switch format {
	case "csv":
		return t.csv()
	case "tsv":
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		w.Comma = '\t'
		records, err := csv.NewReader(bytes.NewReader(t.csv())).ReadAll()
		if err != nil {
			tb.Fatal(err)
		}
		if err := w.WriteAll(records); err != nil {
			tb.Fatal(err)
		}
		return out.Bytes()
	case "ndjson", "jsonl":
		return t.ndjson()
	case "parquet":
		return t.parquet(tb)
	}
	return t.arrow(tb)
}
