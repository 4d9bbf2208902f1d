package files

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
)

// readTables reads files that are named after their kinds. It returns all events, and the
// source at its end.
func readTables(t *testing.T, config Config, files map[string]string) (*event.Batch, *Source) {
	t.Helper()
	config.Inputs = inputsOf(t, files)
	source, err := NewSource(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	var steps []*event.Batch
	for {
		b := new(event.Batch)
		if err := source.Next(t.Context(), b); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, b)
	}
	return merged(steps), source
}

// ends returns the ends of the edges.
func ends(b *event.Batch) (list []string) {
	for _, e := range b.Edges {
		list = append(list, e.Src.String()+">"+e.Dst.String())
	}
	return list
}

// Files of edges as programs write them must be read without a flag.
func TestEdgesAsProgramsWriteThem(t *testing.T) {
	want := []string{"1>2", "2>3"}
	for name, text := range map[string]string{
		"edge-snap.txt": "# Directed graph: x.txt\n# Nodes: 3 Edges: 2\n# " +
			"FromNodeId\tToNodeId\n1\t2\n2\t3\n",
		"edge-gephi.csv": "Source,Target,Type,Id,Label,timeset,Weight\n1,2,Directed,0,,,1.0\n" +
			"2,3,Directed,1,,,1.0\n",
		"edge-igraph.csv":     "\"from\",\"to\",\"weight\"\n1,2,1\n2,3,1\n",
		"edge-networkx.csv":   "source,target,weight\n1,2,1\n2,3,1\n",
		"edge-musae.csv":      "node_1,node_2\n1,2\n2,3\n",
		"edge-csv2.csv":       "\"\";\"src\";\"dst\";\"weight\"\n\"1\";1;2;0,5\n\"2\";2;3;0,75\n",
		"edge-excel.csv":      "sep=;\r\nSrc;Dst\r\n1;2\r\n2;3\r\n",
		"edge-table.txt":      "\"from\" \"to\"\n\"1\" \"1\" \"2\"\n\"2\" \"2\" \"3\"\n",
		"edge-part.csv":       "\"from\",\"to\"\n\"7\",\"1\",\"2\"\n\"9\",\"2\",\"3\"\n",
		"edge-pandas.csv":     ",src,dst\n0,1,2\n1,2,3\n",
		"edge-missing.csv":    "src,dst\n1.0,2\n2.0,3\n",
		"edge-windows.csv":    "src,dst\r\r\n1,2\r\r\n2,3\r\r\n",
		"edge-spaces.csv":     "src ,\u00a0dst\n1\u00a0,2\u200b\n\ufeff2, 3\u3000\n",
		"edge-trailing.csv":   "src,dst\n1,2,\n2,3,\n",
		"edge-comment.csv":    "# made by x, y\n# on a day\nsrc,dst\n1,2\n2,3\n",
		"edge-tabs.csv":       "src\tdst\n1\t2\n2\t3\n",
		"edge-aliases.ndjson": `{"Source":1,"TARGET":2}` + "\n" + `{"Source":2,"TARGET":3}`,
	} {
		path := filepath.Join(t.TempDir(), name)
		testfile.Write(t, path, text)
		b := merged(readAll(t, Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}}))
		if got := ends(b); !slices.Equal(got, want) || len(b.Refused) > 0 {
			t.Errorf("%s: %v, refused %v", name, got, b.Refused)
		}
	}
	path := filepath.Join(t.TempDir(), "out.small")
	testfile.Write(t, path, "% asym weighted\n% 2 3 3\n1 2 4 1082040961\n2\t3  5 "+"1082040962\n")
	b := merged(readAll(t, Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}}))
	if !slices.Equal(ends(b), want) || b.Edges[1].Weight != 5 || b.Edges[1].Time != 1082040962e9 {
		t.Errorf("KONECT: %+v", b.Edges)
	}
}

// A file without a line of names is read by the names given, and every line of it counts.
func TestColumnsOfFilesWithoutNames(t *testing.T) {
	files := map[string]string{
		"edge.csv": "u0,u9\nu1,u2\n", "label.csv": "vertex,label\nu0,left\nu1,right\n",
		"prediction.csv": "vertex,p_left,p_right\nu0,.5,.5\n",
	}
	b, source := readTables(t, Config{Header: []string{"src,dst"}}, files)
	if got := ends(b); !slices.Equal(got, []string{"u0>u9", "u1>u2"}) || len(b.Labels) != 2 {
		t.Errorf("%v, labels %v, %q", got, b.Labels, source.Warnings())
	}
	b, _ = readTables(
		t,
		Config{Header: []string{"edges=src,,dst"}},
		map[string]string{"edge.csv": "a,x,b\n#c,y,d\n"},
	)
	if got := ends(b); !slices.Equal(got, []string{"a>b", "#c>d"}) {
		t.Errorf("%v", got)
	}
	_, source = readTables(t, Config{Columns: map[string]string{"u0": "src", "u9": "dst"}},
		map[string]string{"edge.csv": "u0,u9\nu1,u2\nu2,u0\n"})
	if w := strings.Join(source.Warnings(), "\n"); !strings.Contains(
		w,
		`the column "u0" is called like a vertex`,
	) {
		t.Errorf("a first row that is taken for names: %q", w)
	}
}

// Words for nothing are nothing in every column, unless they are meant.
func TestWordsForNothing(t *testing.T) {
	text := "src,dst\na,b\n"
	words := []string{
		"NaN",
		"NA",
		"null",
		"None",
		"N/A",
		"nan",
		"<NA>",
		"NULL",
		"#N/A",
		"NaT",
		`\N`,
		"",
		"undefined",
		"(NULL)",
	}
	for _, word := range words {
		text += "x," + word + "\n"
	}
	b, _ := readTables(t, Config{}, map[string]string{"edge.csv": text})
	if len(b.Edges) != 1 || len(b.Refused) != len(words) {
		t.Errorf("%v, %d refused", ends(b), len(b.Refused))
	}
	for _, r := range b.Refused {
		if r.Reason != event.MissingField {
			t.Errorf("%s: %s", r.Reason, r.Detail)
		}
	}
	b, _ = readTables(t, Config{Words: true}, map[string]string{"edge.csv": "src,dst\na,null\n"})
	if got := ends(b); !slices.Equal(got, []string{"a>null"}) {
		t.Errorf("meant: %v", got)
	}
	b, _ = readTables(t, Config{Classes: event.ClassSet{Names: []string{"NA", "yes"}}},
		map[string]string{"label.csv": "vertex,label\na,NA\nb,yes\nc,NaN\n"})
	if len(b.Labels) != 2 || b.Labels[0].Class != 0 {
		t.Errorf("a class called NA: %+v", b.Labels)
	}
	b, _ = readTables(t, Config{}, map[string]string{"edge.ndjson": `{"src":"a","dst":"NaN"}`})
	if len(b.Edges) != 0 || len(b.Refused) != 1 {
		t.Errorf("NDJSON: %v", ends(b))
	}
}

// The advice for a file without names is one that can be obeyed: it names as many columns as a row
// has.
func TestAdviceForFilesWithoutNamesCountsTheirColumns(t *testing.T) {
	path := writeFile(t, "edges.txt", []byte("u1 u2 {}\nu2 u3 {}\n"))
	err := readQuietly(path)
	if err == nil || !strings.Contains(err.Error(), "--columns src,dst,;") {
		t.Fatalf("%v", err)
	}
	b := merged(readAll(t, Config{
		Inputs: []Input{{Path: path, Kind: event.KindEdge}}, Header: []string{"src,dst,"},
	}))
	if got := ends(b); !slices.Equal(got, []string{"u1>u2", "u2>u3"}) || len(b.Refused) > 0 {
		t.Errorf("%v, refused %v", got, b.Refused)
	}
}

// A name that may stand for nobody is a vertex, with a warning: it may be a hub.
func TestDoubtfulNamesAreWarnedOf(t *testing.T) {
	for name, want := range map[string]bool{
		"[deleted]": true, "?": true, "none": true,
		"None of them": false, "a": false,
	} {
		_, source := readTables(
			t,
			Config{},
			map[string]string{"edge.csv": "src,dst\nx," + name + "\ny," + name + "\n"},
		)
		warned := strings.Contains(
			strings.Join(source.Warnings(), "\n"),
			"2 rows of edges or posts name the vertex",
		)
		if warned != want {
			t.Errorf("%q: warned %v", name, warned)
		}
	}
}

// Characters that look like a space make another id of the same look, so they are refused within
// one.
func TestOtherSpacesWithinIDsAreRefused(t *testing.T) {
	b, _ := readTables(t, Config{}, map[string]string{
		"edge.csv": "src,dst\nnew york,b\nnew\u00a0york,b\nnew\u2007york,b\nnew\u3000york,b\n",
	})
	if len(b.Edges) != 1 || len(b.Refused) != 3 || b.Refused[0].Reason != event.BadID {
		t.Errorf("%v, refused %v", ends(b), b.Refused)
	}
}

// A blank attribute says nothing in every form of a table: it takes none away, and is counted.
func TestBlankAttributesAreIgnored(t *testing.T) {
	for name, text := range map[string]string{
		"vertex.csv": "vertex,city,age\na,Cork,31\na,,\na,NA,null\nb,,5\n",
		"vertex.ndjson": `{"vertex":"a","city":"Cork","age":31}` + "\n" +
			`{"vertex":"a","city":null,"age":null}`,
	} {
		b, source := readTables(t, Config{}, map[string]string{name: text})
		removed := 0
		for _, v := range b.Vertices {
			for _, a := range v.Attributes {
				if a.Value.Kind == event.NullValue {
					removed++
				}
			}
		}
		summary := strings.Join(source.Summary(), "\n")
		if removed > 0 || len(b.Refused) > 0 ||
			!strings.Contains(summary, "blank attributes are ignored") {
			t.Errorf("%s: %d attributes removed, refused %v\n%s", name, removed, b.Refused, summary)
		}
	}
}

// Ids of 64 bits are attributes with all their digits.
func TestLargeIDsAsAttributes(t *testing.T) {
	for name, text := range map[string]string{
		"vertex.csv": "vertex,conv,small,minus\na,1234567890123456701,5,-1234567890123456701\n",
		"vertex.ndjson": `{"vertex":"a","conv":1234567890123456701,"small":5,` +
			`"minus":-1234567890123456701}`,
	} {
		b, _ := readTables(t, Config{}, map[string]string{name: text})
		want := `[{conv {1234567890123456701 0 1}} {small { 5 2}} {minus {-1234567890123456701 ` +
			`0 1}}]`
		if len(b.Vertices) != 1 || fmt.Sprint(b.Vertices[0].Attributes) != want {
			t.Errorf("%s: %v", name, b.Vertices)
		}
	}
}

// A label that is not there, or -1, says nothing: an earlier one stands. Where -1 is one of two
// values, it must be said whether it is a class.
func TestLabelsThatAreNotThere(t *testing.T) {
	for name, text := range map[string]string{
		"label.csv": "vertex,label\na,1\nb,0\na,\nb,-1\na,NA\nb,-1.0\n",
		"label.ndjson": `{"vertex":"a","label":1}` + "\n" + `{"vertex":"b","label":0}` + "\n" +
			`{"vertex":"a","label":null}` + "\n" + `{"vertex":"b","label":-1}`,
	} {
		b, source := readTables(t, Config{}, map[string]string{name: text})
		if len(b.Labels) != 2 || len(b.Refused) != 0 {
			t.Errorf("%s: %+v, refused %v", name, b.Labels, b.Refused)
		}
		tally := source.Tallies()[0]
		if tally.LeftOut != tally.Blank+tally.MinusOne ||
			tally.Rows != len(b.Labels)+tally.LeftOut ||
			tally.MinusOne == 0 {
			t.Errorf("%s: %+v", name, tally)
		}
		if w := strings.Join(source.Warnings(), "\n"); !strings.Contains(
			w,
			"labels are -1: read as none",
		) {
			t.Errorf("%s: %q", name, w)
		}
	}
	files := map[string]string{
		"label.csv":      "vertex,label\na,-1\nb,1\n",
		"prediction.csv": "vertex,p0,p1\na,1,0\n",
	}
	_, err := NewSource(Config{Inputs: inputsOf(t, files)})
	if err == nil || !strings.Contains(err.Error(), "--classes=-1,1") {
		t.Errorf("labels -1 and 1: %v", err)
	}
	for _, name := range []string{"label.csv", "label.ndjson"} {
		text := "vertex,label\na,-1\nb,1\nc,1.0\n"
		if name == "label.ndjson" {
			text = `{"vertex":"a","label":-1}` + "\n" + `{"vertex":"b","label":1}` + "\n" +
				`{"vertex":"c","label":1.0}`
		}
		b, _ := readTables(
			t,
			Config{Classes: event.ClassSet{Names: []string{"-1", "1"}}},
			map[string]string{name: text},
		)
		if len(b.Labels) != 3 || b.Labels[0].Class != 0 || b.Labels[1].Class != 1 ||
			b.Labels[2].Class != 1 {
			t.Errorf("%s: classes -1 and 1: %+v, refused %v", name, b.Labels, b.Refused)
		}
	}
	b, _ := readTables(
		t,
		Config{Classes: event.ClassSet{Names: []string{"-1", "0", "1"}}},
		map[string]string{
			"label.ndjson": `{"vertex":"a","label":0}` + "\n" + `{"vertex":"b","label":2}`,
		},
	)
	if len(b.Labels) != 1 || b.Labels[0].Class != 1 || len(b.Refused) != 1 {
		t.Errorf("classes -1, 0 and 1: %+v, refused %v", b.Labels, b.Refused)
	}
}

// A single score is the probability of the second of two classes, and one that rounding made
// negative is zero.
func TestScoresAndRounding(t *testing.T) {
	b, _ := readTables(t, Config{Columns: map[string]string{"score": "p1"}},
		map[string]string{"prediction.csv": "vertex,score\na,0.25\nb,1\n"})
	if len(b.Predictions) != 2 ||
		!slices.Equal(b.Predictions[0].Units, []uint32{event.One / 4 * 3, event.One / 4}) {
		t.Errorf("a score: %+v, refused %v", b.Predictions, b.Refused)
	}
	b, _ = readTables(
		t,
		Config{},
		map[string]string{
			"prediction.csv": "vertex,p0,p1\na,-1e-17,1\nb,1.0000002,-2e-7\nc,-0.01,1\n",
		},
	)
	if len(b.Predictions) != 2 || b.Predictions[0].Units[1] != event.One || len(b.Refused) != 1 {
		t.Errorf("rounding: %+v, refused %v", b.Predictions, b.Refused)
	}
}

// Repeated rows are counted, and so are vertices of one file that are missing in the
// others.
func TestSummaryOfWhatWasRead(t *testing.T) {
	_, source := readTables(t, Config{}, map[string]string{
		"edge.csv":       "Source,Target\na,b\nb,c\nb,a\nc,d\n",
		"label.csv":      "id,user_id,label\na,1,0\n@b,1,1\n@c,1,1\na,1,1\n",
		"prediction.csv": "vertex,p0,p1\na,1,0\nb,1,0\nc,0,1\nd,0,1\nc,0,1\n",
		"member.csv":     "community,vertex\nx,a\nx,zz\n",
	})
	text := strings.Join(source.Summary(), "\n")
	for _, want := range []string{
		"4 rows: src from Source, dst from Target", "vertex from id (not user_id)",
		"3 edges between 4 vertices, 4 of them with a prediction; 1 rows repeat one",
		"3 labels (0 0, 1 3): 1 of vertices with an edge, 1 of vertices with a prediction; 1 " +
			"rows changed one: the last class stands",
		"4 predictions: 4 of vertices with an edge; 1 rows repeat one",
		"2 memberships in 1 communities: 1 of vertices with an edge",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if w := strings.Join(source.Warnings(), "\n"); !strings.Contains(
		w,
		"1 of 3 vertices with labels have",
	) {
		t.Errorf("warnings %q", w)
	}
}

// Labels and predictions that contradict each other are warned of, unless their times say which
// holds.
func TestContradictionsAreWarnedOf(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"labels": {
			map[string]string{"label.csv": "vertex,label\na,0\nb,1\na,1\n"},
			"1 rows contradict an earlier label",
		},
		"predictions": {
			map[string]string{"prediction.csv": "vertex,p0,p1\na,1,0\na,0,1\n"},
			"1 rows contradict an earlier prediction",
		},
		"times": {map[string]string{"label.csv": "vertex,label,time\na,0,1714564800\nb,1,\na,1," +
			"1714564801\n"}, ""},
		"again": {map[string]string{"label.csv": "vertex,label\na,0\nb,1\na,0\n"}, ""},
	} {
		_, source := readTables(t, Config{}, test.files)
		w := strings.Join(source.Warnings(), "\n")
		if !strings.Contains(w, test.want) || test.want == "" && strings.Contains(w, "contradict") {
			t.Errorf("%s: %q", name, w)
		}
	}
}

// The weights of edges that are given again add up where they are to.
func TestWeightsAddUp(t *testing.T) {
	b, _ := readTables(
		t,
		Config{Sum: true},
		map[string]string{"edge.csv": "src,dst,weight\na,b,1\nb,a,2\na,c,\na,b,0.5\n"},
	)
	if n := len(b.Edges); n != 4 || b.Edges[3].Weight != 3.5 {
		t.Errorf("%+v", b.Edges)
	}
}

// Every id that lost digits in a spreadsheet or a float column must be recognised as
// rounded.
func TestRoundedIDsAreNamed(t *testing.T) {
	for name, format := range map[string]func(id int) string{
		"fifteen digits": func(id int) string { return strconv.Itoa(id/10000) + "0000" },
		"shortest": func(id int) string {
			return strconv.FormatFloat(float64(id), 'f', -1,
				64)
		},
		"float": func(id int) string {
			return strconv.FormatFloat(float64(id), 'f', 0,
				64)
		},
		"whole": strconv.Itoa,
	} {
		text := "src,dst\n"
		for i := range 12 {
			text += "x," + format(1234567890123456789+7_919_003*i) + "\n"
		}
		_, source := readTables(t, Config{}, map[string]string{"edge.csv": text})
		warned := strings.Contains(strings.Join(source.Warnings(), "\n"), "look rounded")
		if warned != (name != "whole") {
			t.Errorf("%s: warned %v\n%s", name, warned, text)
		}
	}
}
