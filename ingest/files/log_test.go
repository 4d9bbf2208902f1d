package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// A log that is written and read gives the same events in the same order, and
// written again the same bytes.
func TestALogReadsBackAsItWasWritten(t *testing.T) {
	leakCheck(t)
	for seed := range uint64(3) {
		stream := eventtest.New(
			seed,
			eventtest.Config{Classes: 3, Weighted: true, Erase: true, TTL: true},
		)
		var want []*event.Batch
		for range 50 {
			want = append(want, stream.Next())
		}
		want = append(want, &event.Batch{Controls: []event.Control{
			{
				Op:   event.Tick,
				Time: want[49].Time + 1,
			}, {Op: event.Configure, Config: []byte(`{"alpha":0.2}`)},
		}})
		for _, name := range []string{"log.ndjson", "log.jsonl.gz", "log.ndjson.zst"} {
			first, second := filepath.Join(t.TempDir(), name), filepath.Join(
				t.TempDir(),
				"again."+name,
			)
			writeLog(t, first, want)
			got := readAll(t, Config{
				Inputs:  []Input{{Path: first, Log: true}},
				Classes: event.ClassSet{Count: 3}, Steps: ingest.StepConfig{EventsMax: 64},
			})
			a, b := merged(want), merged(got)
			if diff := cmp.Diff(a, b, cmpopts.IgnoreUnexported(event.Batch{}),
				cmpopts.EquateEmpty(),
				cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Position" },
					cmp.Ignore())); diff != "" {
				t.Fatalf("seed %d %s:\n%s", seed, name, diff[:min(len(diff), 2000)])
			}
			writeLog(t, second, got)
			if x, y := readFile(t, first), readFile(t, second); x != y {
				t.Fatalf("seed %d %s: written again it differs", seed, name)
			}
		}
	}
}

func writeLog(t *testing.T, path string, steps []*event.Batch) {
	t.Helper()
	w, err := CreateLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range steps {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The kind may stand anywhere in a line; a line without a sound one is refused.
func TestTheKindOfALogLine(t *testing.T) {
	leakCheck(t)
	lines := []string{
		`{"kind":"edge","src":1,"dst":2}`,
		`{ "src":1, "kind" : "edge", "dst":3 }`,
		`{"src":1,"dst":4,"kind":"edge"}`,
		`{"dst":5,"src":1,"kind":"\u0065dge"}`,
		``,
		`{"kind":"control","op":"flush"}`,
		`{"src":1,"dst":2}`,
		`{"kind":"node","src":1,"dst":2}`,
		`{"kind":"edge","src":1,"dst":1}`,
		`{"kind":"edge","src":1,"dst":2,"kind":"edge"}`,
		`{"kind":"edge"}`,
		`{"kind":"edge","src":1,"dst":2`,
		`[1]`,
		`{"kind":"edge","src":1,"dst":6}`,
	}
	path := writeFile(t, "log.ndjson", []byte(strings.Join(lines, "\n")))
	b := merged(readAll(t, Config{Inputs: []Input{{Path: path, Log: true}}}))
	if len(b.Edges) != 5 || len(b.Controls) != 1 {
		t.Fatalf(
			"%d edges and %d controls, want 5 and 1: refused %+v", len(b.Edges), len(b.Controls),
			b.Refused,
		)
	}
	for i, e := range b.Edges {
		if e.Src != event.NumberID(1) || e.Dst != event.NumberID(uint64(i+2)) {
			t.Errorf("edge %d is %v-%v", i, e.Src, e.Dst)
		}
	}
	want := []event.Reason{
		event.MissingField, event.UnknownKind, event.SelfLoop, event.Malformed, event.MissingField,
		event.Malformed, event.Malformed,
	}
	for i, r := range b.Refused {
		if i >= len(want) || r.Reason != want[i] || r.Position != event.Position(7+i) ||
			string(r.Original) == "" {
			t.Errorf(
				"refusal %d: %s at %d: %s of %s", i, r.Reason, r.Position, r.Detail, r.Original,
			)
		}
	}
}

// Runs must keep the order of positions, and hold events of one kind each.
func TestRunsFollowThePositions(t *testing.T) {
	edge := func(p event.Position) event.Edge { return event.Edge{Position: p} }
	label := func(p event.Position) event.Label { return event.Label{Position: p} }
	b := event.Batch{
		Edges:  []event.Edge{edge(1), edge(2), edge(5)},
		Labels: []event.Label{label(3), label(4), label(6)},
	}
	want := []Run{
		{event.KindEdge, 0, 2},
		{event.KindLabel, 0, 2},
		{event.KindEdge, 2, 3},
		{event.KindLabel, 2, 3},
	}
	if got := Runs(&b); !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
	if got := Runs(&event.Batch{}); len(got) > 0 {
		t.Errorf("runs of nothing: %v", got)
	}
}
