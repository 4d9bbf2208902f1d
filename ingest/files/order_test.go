package files

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// sequence lists the events of steps in the order of their positions.
func sequence(steps []*event.Batch) []string {
	type item struct {
		at   event.Position
		text string
	}
	var items []item
	add := func(at event.Position, kind string, id event.ID, t event.Time) {
		items = append(items, item{at, fmt.Sprintf("%s %v @%d", kind, id, t/1e9)})
	}
	for _, b := range steps {
		for _, e := range b.Edges {
			add(e.Position, "edge", e.Src, e.Time)
		}
		for _, e := range b.Labels {
			add(e.Position, "label", e.Vertex, e.Time)
		}
		for _, e := range b.Predictions {
			add(e.Position, "prediction", e.Vertex, e.Time)
		}
		for _, e := range b.Members {
			add(e.Position, "member", e.Vertex, e.Time)
		}
		for _, e := range b.Vertices {
			add(e.Position, "vertex", e.Vertex, e.Time)
		}
	}
	slices.SortFunc(items, func(a, b item) int { return int(a.at) - int(b.at) })
	out := make([]string, len(items))
	for i, x := range items {
		if x.at != event.Position(i+1) {
			out[i] = fmt.Sprintf("at %d: ", x.at)
		}
		out[i] += x.text
	}
	return out
}

func inputsOf(t *testing.T, files map[string]string) (inputs []Input) {
	t.Helper()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}) {
		kind, ok := event.ParseKind(strings.SplitN(name, ".", 2)[0])
		inputs = append(inputs, Input{
			Path: writeFile(t, name, []byte(files[name])), Kind: kind, Log: !ok,
		})
	}
	rank := func(input Input) int {
		if input.Log {
			return len(logKinds)
		}
		return slices.Index(logKinds[:], input.Kind)
	}
	slices.SortStableFunc(inputs, func(a, b Input) int { return rank(a) - rank(b) })
	return inputs
}

// Rows without a time come first, in the order of the kinds; the others follow by
// time, then kind, then row, whether or not their file was in that order.
func TestFileRowsAreInTheOrderOfTime(t *testing.T) {
	leakCheck(t)
	inputs := inputsOf(t, map[string]string{
		"edge.csv":       "src,dst,ts\n1,2,30\n3,4,10\n5,6,\n7,8,10\n9,10,20\n",
		"label.csv":      "vertex,label\n1,0\n2,1\n",
		"prediction.csv": "vertex,class,time\n1,0,10\n2,1,20\n",
		"vertex.ndjson": `{"id":1,"language":"de","time":"1970-01-01T00:00:20Z"}` + "\n" +
			`{"id":2,"language":"fr"}`,
	})
	got := sequence(readAll(t, Config{Inputs: inputs}))
	want := []string{
		"vertex 2 @0", "label 1 @0", "label 2 @0", "edge 5 @0",
		"prediction 1 @10", "edge 3 @10", "edge 7 @10",
		"vertex 1 @20", "prediction 2 @20", "edge 9 @20", "edge 1 @30",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("order\n%q, want\n%q", got, want)
	}
}

// Sorting in memory must give the same steps as a sorted file.
func TestAnUnsortedFileGivesTheStepsOfASortedOne(t *testing.T) {
	leakCheck(t)
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		rows := make([]string, 3000)
		for i := range rows {
			rows[i] = fmt.Sprintf("%d,v%d,w%d", 1_000_000_000+i/3, i, i)
		}
		read := func(rows []string) []*event.Batch {
			path := writeFile(t, "e.csv.gz", []byte("ts,src,dst\n"+strings.Join(rows, "\n")))
			return readAll(t, Config{
				Inputs: []Input{{Path: path, Kind: event.KindEdge}},
				Steps:  ingest.StepConfig{EventsMax: 1000, Every: 100 * time.Second},
			})
		}
		want := read(rows)
		shuffled := slices.Clone(rows)
		r.Shuffle(len(rows), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		slices.SortStableFunc(
			rows,
			func(a, b string) int { return strings.Compare(a[:10], b[:10]) },
		)
		slices.SortFunc(shuffled[:len(rows)/2], strings.Compare)
		got := read(shuffled)
		if len(got) != len(want) || len(want) < 8 {
			t.Fatalf("seed %d: %d steps, sorted %d", seed, len(got), len(want))
		}
		if all := merged(got); len(all.Edges) != len(rows) {
			t.Fatalf("seed %d: %d edges of %d rows", seed, len(all.Edges), len(rows))
		}
		for i := range got {
			if got[i].First != want[i].First || got[i].Last != want[i].Last ||
				got[i].Time != want[i].Time ||
				got[i].Emit != want[i].Emit ||
				len(got[i].Edges) != len(want[i].Edges) {
				t.Fatalf(
					"seed %d: step %d is %d-%d, sorted %d-%d", seed, i, got[i].First, got[i].Last,
					want[i].First, want[i].Last,
				)
			}
		}
	}
}

// A batch must not change while later ones are read.
func TestBatchesOfFilesDoNotShareMemory(t *testing.T) {
	leakCheck(t)
	tables := randomTables(rand.New(rand.NewPCG(5, 0)), 3000)
	var config Config
	for _, table := range tables {
		config.Inputs = append(config.Inputs, Input{
			Path: writeFile(t, table.kind.String()+".parquet", table.parquet(t)), Kind: table.kind,
		})
	}
	config.Classes = event.ClassSet{Count: 3}
	source, err := NewSource(config)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var texts []string
	var kept []*event.Batch
	for {
		b := new(event.Batch)
		if err := source.Next(context.Background(), b); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, b)
		texts = append(texts, describe(b))
	}
	for i, b := range kept {
		if describe(b) != texts[i] {
			t.Fatalf("step %d changed after it was delivered", i)
		}
	}
}

func describe(b *event.Batch) string {
	return fmt.Sprint(b.Edges, b.Labels, b.Predictions, b.Members, b.Vertices, b.Refused)
}

// Classes come from the files: names in their order, indices as they are.
func TestInferClasses(t *testing.T) {
	leakCheck(t)
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{
			"names",
			map[string]string{"label.csv": "vertex,label\n1,right\n2,left\n3,\n4,-1\n"},
			"[left right]",
		},
		{"indices", map[string]string{"label.csv": "vertex,label\n1,4\n2,0\n3,-1\n"}, "5"},
		{"columns", map[string]string{"prediction.csv": "vertex,p0,p1,p2\n1,1,0,0\n"}, "3"},
		{
			"list",
			map[string]string{"prediction.ndjson": `{"vertex":1,"probabilities":[0.5,0.5]}`},
			"2",
		},
		{"names beside columns without", map[string]string{
			"prediction.csv": "vertex,p0,p1\n1,1,0\n", "label.csv": "vertex,label\na,no\nb,yes\n",
		}, "error: name the columns p_no and so on, or give --classes"},
		{"indices beside columns", map[string]string{
			"prediction.csv": "vertex,p0,p1,p2\n1,1,0,0\n", "label.csv": "vertex,label\na,0\nb,1\n",
		}, "3"},
		{"columns with names", map[string]string{
			"prediction.csv": "vertex,p_yes,p_no\n1,1,0\n",
			"label.csv":      "vertex,label\na,no\nb,yes\n",
		}, "[yes no]"},
		{"keys with names", map[string]string{
			"prediction.ndjson": `{"vertex":1,"p_yes":0.5,"p_no":0.5}` + "\n" +
				`{"vertex":2,"p_no":0.5,"p_yes":0.5}`,
		}, "[yes no]"},
		{"columns with names and indices", map[string]string{
			"prediction.csv": "vertex,p_yes,p_no\n1,1,0\n", "label.csv": "vertex,label\na,1\n",
		}, "error: such as \"yes\", and numbers in"},
		{
			"columns with and without names",
			map[string]string{"prediction.csv": "vertex,p_yes,p1\n1,1,0\n"},
			"error: some columns of probabilities are p0, p1, ... and some name their class",
		},
		{"files with and without names", map[string]string{
			"prediction.csv":    "vertex,p_yes,p_no\n1,1,0\n",
			"prediction.ndjson": `{"vertex":1,"p":[0.5,0.5]}`,
		}, "error: name the columns p_yes and so on, or give --classes"},
		{"files with other names", map[string]string{
			"prediction.csv": "vertex,p_yes,p_no\n1,1,0\n",
			"prediction.tsv": "vertex\tp_yes\tp_maybe\n1\t1\t0\n",
		}, "error: give the classes with --classes"},
		{"keys beside a class", map[string]string{
			"prediction.ndjson": `{"vertex":1,"class":"left","p0":0.5,"p1":0.5}`,
		}, "2"},
		{
			"class predictions",
			map[string]string{"prediction.csv": "vertex,class\n1,b\n2,a\n"},
			"[a b]",
		},
		{"log", map[string]string{
			"log.ndjson": `{"kind":"edge","src":1,"dst":2}` + "\n" +
				`{"vertex":1,"kind":"label","class":"b"}` + "\n" +
				`{"kind":"label","vertex":2,"label":"a"}`,
		}, "[a b]"},
		{"none", map[string]string{"edge.csv": "src,dst\n1,2\n"}, "0"},
		{
			"mixed",
			map[string]string{"label.csv": "vertex,label\n1,0\n2,left\n"},
			"error: such as \"left\", and numbers in",
		},
		{"counts differ", map[string]string{
			"prediction.csv": "vertex,p0,p1\n1,1,0\n",
			"label.csv":      "vertex,label\na,no\nb,yes\nc,maybe\n",
		}, "error: name the columns p_maybe and so on"},
		{"lists differ", map[string]string{
			"prediction.ndjson": `{"vertex":1,"probabilities":[0.5,0.5]}` + "\n" +
				`{"vertex":1,"probabilities":[1]}`,
		}, "error: 1 probabilities, and 2 in"},
	} {
		set, err := inferClasses(&Config{Inputs: inputsOf(t, test.files)})
		got := fmt.Sprint(set.Names)
		if len(set.Names) == 0 {
			got = fmt.Sprint(set.Count)
		}
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != test.want && !(strings.HasPrefix(test.want, "error: ") &&
			strings.Contains(got, strings.TrimPrefix(test.want, "error: "))) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// Probabilities must go to the class that their column names, whatever the order of the
// columns.
func TestColumnsNameTheirClass(t *testing.T) {
	leakCheck(t)
	for _, format := range []string{
		"vertex,p_no,p_yes\n1,0.25,0.75\n",
		"p_yes,vertex,p_no\n0.75,1,0.25\n",
	} {
		inputs := inputsOf(t, map[string]string{"prediction.csv": format})
		b := merged(
			readAll(
				t,
				Config{Inputs: inputs, Classes: event.ClassSet{Names: []string{"yes", "no"}}},
			),
		)
		if len(b.Predictions) != 1 ||
			!slices.Equal(b.Predictions[0].Units, []uint32{event.One / 4 * 3, event.One / 4}) {
			t.Errorf("%q: %+v", format, b.Predictions)
		}
	}
	inputs := inputsOf(t, map[string]string{"prediction.csv": "vertex,p_yes\n1,1\n"})
	_, err := NewSource(
		Config{Inputs: inputs, Classes: event.ClassSet{Names: []string{"yes", "no"}}},
	)
	if err == nil || !strings.Contains(err.Error(), "column p_no is missing") {
		t.Errorf("a class without a column: %v", err)
	}
}

// In files without types, a number must be a whole one to be an id.
func TestNumbersInCSVAreNoTextIDs(t *testing.T) {
	leakCheck(t)
	good := []string{
		"0",
		"42",
		"18446744073709551615",
		"007",
		"10.0.0.1",
		"1e5",
		"a-5",
		"2024-01-01",
		"-",
		"00018446744073709551616",
		"-5",
		"-1001234567890",
		"42.0",
		"18446744073709551616",
		"115512345678901234567",
		"12e45",
	}
	bad := []string{
		"3.5", "-0.5", "1.23E+18", "1.23457E+018", "-1e+12", "1.0E18", "1,234,567",
		"1234567890123456789.0",
		"a\u200bb", "a\x01", "NaN", "NA", "null", "#N/A",
	}
	for i, id := range slices.Concat(good, bad) {
		b := merged(
			readAll(
				t,
				Config{
					Inputs: inputsOf(t, map[string]string{"edge.tsv": "src\tdst\nx\t" + id + "\n"}),
				},
			),
		)
		if refused := len(b.Refused) == 1; refused != (i >= len(good)) {
			t.Errorf("%s: refused %+v", id, b.Refused)
		}
	}
}
