package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// One try must name the columns that every file lacks, with one --map that fits all.
func TestOneTryNamesTheColumnsOfAllFiles(t *testing.T) {
	dir := t.TempDir()
	var inputs []Input
	for _, file := range []struct {
		name, text string
		kind       event.Kind
	}{
		{"labels.csv", "Konto;Klasse\na;ja\nb;nein\n", event.KindLabel},
		{"predictions.csv", "Konto;ja;nein\na;0,8;0,2\nb;0,1;0,9\n", event.KindPrediction},
		{"edges.csv", "Von;Nach\na;b\n", event.KindEdge},
		{"members.csv", "community;vertex\nall;a\n", event.KindMember},
	} {
		path := filepath.Join(dir, file.name)
		if err := os.WriteFile(path, []byte(file.text), 0o644); err != nil {
			t.Fatal(err)
		}
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
		"Konto": "vertex", "Klasse": "label", "ja": "p_ja", "nein": "p_nein",
		"Von": "src", "Nach": "dst",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}
