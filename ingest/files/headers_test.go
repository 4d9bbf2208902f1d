package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
)

// One try must name the columns that every file lacks, with one --map that fits all.
func TestOneTryNamesTheColumnsOfAllFiles(t *testing.T) {
	dir := t.TempDir()
	var inputs []Input
	for _, file := range []struct {
		name, text string
		kind       event.Kind
	}{
		{"labels.csv", "Wer;Was\na;ja\nb;nein\n", event.KindLabel},
		{"predictions.csv", "Wer;ja;nein\na;0,8;0,2\nb;0,1;0,9\n", event.KindPrediction},
		{"edges.csv", "Beginn;Ende\na;b\n", event.KindEdge},
		{"members.csv", "community;vertex\nall;a\n", event.KindMember},
	} {
		path := filepath.Join(dir, file.name)
		testfile.Write(t, path, file.text)
		inputs = append(inputs, Input{Path: path, Kind: file.kind})
	}
	_, err := NewSource(Config{Inputs: inputs})
	if err == nil {
		t.Fatal("files with other names of columns are read")
	}
	for _, want := range []string{
		`labels.csv: no column "vertex", "label"`,
		`predictions.csv: no column "vertex", "p0", "p1", ... or "class"`,
		"--map vertex=COLUMN,p_CLASS=COLUMN",
		`edges.csv: no column "src", "dst"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
	if n := strings.Count(err.Error(), "no column"); n != 3 {
		t.Errorf("%d files lack columns, want 3: %v", n, err)
	}
	source, err := NewSource(Config{Inputs: inputs, Columns: map[string]string{
		"Wer": "vertex", "Was": "label", "ja": "p_ja", "nein": "p_nein",
		"Beginn": "src", "Ende": "dst",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}

// A file without our names of columns must be named together with the row below its table, so that
// the second try is the last; names in other languages need no try.
func TestOneTryNamesTheRowBelowATable(t *testing.T) {
	rows := func(row string) string { return strings.Repeat(row+"\n", 30) }
	for _, file := range []struct{ text, want string }{
		{"Beginn;Ende\n" + rows("a;b") + "Summe;1200\n", `line 32 is called "Summe"`},
		{"Beginn;Ende\n" + rows("a;b") + "\nSumme: 1200\n", `line 33 is called "Summe: 1200"`},
		{
			"Beginn;Ende;n\n" + rows("a;b;1,0") + ";;30,0\n",
			`line 32, which begins with "30,0", is unlike the 30 rows before it`,
		},
		{"Beginn,Ende\n" + rows("a,b") + "TOTAL,\nSource: me\n", `line 32 is called "TOTAL"`},
		{
			"Beginn,Ende\n" + rows("a,b") + "Source: census\n",
			`line 32, which begins with "Source: census", is unlike the 30 rows`,
		},
		{"Beginn,Ende\n" + rows("1,2") + "noted,in May\n", `line 32, which begins with "noted"`},
		{"Beginn Ende\n" + rows("1 2") + "30\n", `line 32, which begins with "30"`},
		{"Beginn,Ende\n" + rows("1,b") + rows("a,2") + "a,b\n", ""},
		{"Beginn,Ende,n\n" + rows("a,b,") + rows("a,b,1") + "a,b,\n", ""},
		{"Beginn,Ende\na,b\n1,2\n", ""},
		{"Beginn,Ende\n", ""},
	} {
		path := filepath.Join(t.TempDir(), "edges.csv")
		testfile.Write(t, path, file.text)
		_, err := NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
		if err == nil || !strings.Contains(err.Error(), "--map src=COLUMN,dst=COLUMN") {
			t.Fatalf("%q: %v", file.text, err)
		}
		if !strings.Contains(err.Error(), file.want) ||
			strings.Contains(err.Error(), footerAdvice) != (file.want != "") {
			t.Errorf("%q: %v, want %q", file.text, err, file.want)
		}
	}
	for _, header := range []string{
		"Quelle;Ziel;Gewicht", "Von;Nach;Gewicht", "Source;Cible;Poids", "Origen;Destino;Peso",
		"ORIGINE;DESTINAZIONE;PESO", "Bron;Doel;weight",
	} {
		path := filepath.Join(t.TempDir(), "edges.csv")
		if err := os.WriteFile(path, []byte(header+"\na;b;1,5\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		source, err := NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
		if err != nil {
			t.Errorf("%s: %v", header, err)
			continue
		}
		var b event.Batch
		if err := source.Next(t.Context(), &b); err != nil || len(b.Edges) != 1 ||
			b.Edges[0].Weight != 1.5 {
			t.Errorf("%s: %v, %v", header, b.Edges, err)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A column of one name may be the source of edges and the vertex of labels and members: a renaming
// holds for the files whose kind has the field, and the others find the column by themselves.
func TestAColumnIsAnotherFieldInEachFile(t *testing.T) {
	dir := t.TempDir()
	var inputs []Input
	for _, file := range []struct {
		name, text string
		kind       event.Kind
	}{
		{"labels.csv", "user,stance\na,ja\nb,nein\n", event.KindLabel},
		{"edges.csv", "user,retweeted_user\na,b\n", event.KindEdge},
		{"members.csv", "group,user\nall,a\n", event.KindMember},
	} {
		path := filepath.Join(dir, file.name)
		testfile.Write(t, path, file.text)
		inputs = append(inputs, Input{Path: path, Kind: file.kind})
	}
	for _, rename := range []map[string]string{
		{"user": "src", "retweeted_user": "dst"},
		{"user": "src,vertex", "retweeted_user": "dst"},
	} {
		source, err := NewSource(Config{Inputs: inputs, Columns: rename})
		if err != nil {
			t.Fatal(err)
		}
		var b event.Batch
		if err := source.Next(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if len(b.Labels) != 2 || b.Labels[0].Vertex.Name != "a" || len(b.Members) != 1 ||
			b.Members[0].Vertex.Name != "a" || len(b.Edges) != 1 ||
			b.Edges[0].Src.Name != "a" || b.Edges[0].Dst.Name != "b" {
			t.Errorf("%v: %+v", rename, b)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
	for to, want := range map[string]string{
		"src,dst":        `is renamed to "src" and "dst", which are two columns of edge`,
		"src,sorce":      `is renamed to "sorce", which none of the files has`,
		"src,repost_of":  `is renamed to "repost_of", which none of the files has`,
		"vertex,label":   `is renamed to "vertex" and "label", which are two columns`,
		"src,vertex,dst": `is renamed to "src" and "dst", which are two columns of edge`,
	} {
		_, err := NewSource(Config{Inputs: inputs, Columns: map[string]string{"user": to}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", to, err, want)
		}
	}
}
