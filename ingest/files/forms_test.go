package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// warns reports whether a warning contains each text.
func warns(t *testing.T, s *Source, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.ContainsFunc(s.Warnings(), func(w string) bool {
			return strings.Contains(w, text)
		}) {
			t.Errorf("no warning %q in %q", text, s.Warnings())
		}
	}
}

// Changes of ids by a spreadsheet are undone, refused or warned of.
func TestIDsThatASpreadsheetChanged(t *testing.T) {
	b, _ := readTables(t, Config{}, map[string]string{
		"edge.csv": "src,dst\n\"=\"\"12\"\"\",'34\n\"=\"\"u1\"\"\",5\n",
	})
	if got := ends(b); !slices.Equal(got, []string{"12>34", "u1>5"}) || len(b.Refused) > 0 {
		t.Errorf("%v, refused %v", got, b.Refused)
	}
	b, _ = readTables(t, Config{}, map[string]string{"edge.csv": "src,dst\n1,#######\n"})
	if len(b.Refused) != 1 || !strings.Contains(b.Refused[0].Detail, "too narrow") {
		t.Errorf("%v", b.Refused)
	}
	for _, day := range []string{"1-Mar", "Mar-01", "2024-03-01 00:00:00", "01.03.2024", "3/1/24"} {
		_, s := readTables(t, Config{}, map[string]string{"edge.csv": "src,dst\nb," + day + "\n"})
		warns(t, s, fmt.Sprintf("1 ids of edges or posts look like dates, such as %q", day))
	}
	for _, name := range []string{"march-1", "a-b", "1.5", "12-34", "x/y", "2024-03-01T"} {
		if isDate(name) {
			t.Errorf("%s is no date", name)
		}
	}
}

// A warning names vertices with ids that differ only in capitals, zeros or the like. A
// count of ids that meet nothing says how many would meet in another form.
func TestIDsOfSeveralForms(t *testing.T) {
	var edges, labels strings.Builder
	edges.WriteString("src,dst\n")
	labels.WriteString("vertex,label\n")
	for i := range 20 {
		fmt.Fprintf(&edges, "u\u00fc%d,u\u00fc%d\n", i, (i+1)%20)
		form := []string{"U\u00fc%d", "@u\u00fc%d", "uu\u0308%d", "\uff55\u00fc%d"}[i%4]
		fmt.Fprintf(&labels, form+",%c\n", i, 'a'+rune(i%2))
	}
	_, s := readTables(t, Config{}, map[string]string{
		"edge.csv": edges.String(), "label.csv": labels.String(),
	})
	warns(t, s, "0 of 20 vertices with labels have an edge: are the ids of the files the same? "+
		"20 would, without regard to capitals", "20 vertices have ids that differ only in capitals")
	for _, form := range []string{`"""%s"""`, "'%s'", "00%s", "0\u200d%s"} { // JSON, R, padded
		edges, labels := "src,dst\n", "vertex,label\n"
		for i := range 20 {
			edges += fmt.Sprintf(form+","+form+"\n", fmt.Sprint(i+1), fmt.Sprint((i+1)%20+1))
			labels += fmt.Sprintf("%d,%c\n", i+1, 'a'+rune(i%2))
		}
		_, s = readTables(t, Config{}, map[string]string{"edge.csv": edges, "label.csv": labels})
		warns(t, s, "20 would, without regard to capitals, quotes, a leading @ or zeros",
			"20 vertices have ids that differ only in")
	}
	_, s = readTables(t, Config{}, map[string]string{
		"edge.csv":  "src,dst\nAnn,Bob\nBob,Cy\nCy,Ann\n",
		"label.csv": "vertex,label\nAnn,a\nBob,b\n",
	})
	if got := s.Warnings(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// A vertex with a large share of the edges that no other file has may stand for nobody.
func TestHubsWithoutAnythingElseAreNamed(t *testing.T) {
	var edges, predictions strings.Builder
	edges.WriteString("src,dst\n")
	predictions.WriteString("vertex,p0,p1\n")
	for i := range 40_000 {
		fmt.Fprintf(&edges, "u%d,u%d\n", i, (i*7+1)%40_000)
		fmt.Fprintf(&predictions, "u%d,.5,.5\n", i)
		if i%20 == 0 {
			fmt.Fprintf(&edges, "u%d,keine\nu%d,u5\n", i, i)
		}
	}
	files := map[string]string{"edge.csv": edges.String(), "prediction.csv": predictions.String()}
	_, s := readTables(t, Config{}, files)
	warns(t, s, `rows of edges or posts name the vertex "keine", which no other file has`)
	if got := s.Warnings(); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// Attributes that rows of one vertex contradict are said; ids as floats are warned of.
func TestAttributesOfUnexpectedTypes(t *testing.T) {
	b, s := readTables(t, Config{}, map[string]string{
		"vertex.csv": "vertex,country,conv\n1,DE,1234567890123456701.0\n1,FR,1.5E+18\n",
	})
	warns(t, s, "2 values contradict an earlier attribute of the same vertex")
	if got := s.Summary(); !slices.Contains(got, "2 attributes of vertices; 2 rows changed one: "+
		"the last value stands") {
		t.Errorf("%q", got)
	}
	for i, want := range []string{"1234567890123456701", "1.5E+18"} {
		if v := b.Vertices[i].Attributes[1].Value; v.Kind != event.StringValue || v.Text != want {
			t.Errorf("%+v, want text %s", v, want)
		}
	}
	_, s = readTables(t, Config{}, map[string]string{
		"vertex.ndjson": `{"vertex":1,"conv":1.2345678901234568e+18}`,
	})
	warns(t, s, "1 attributes are floats beyond 2^53")
}

// Columns of probabilities may call their classes by numbers, which labels then have.
func TestClassesThatAreCalledByNumbers(t *testing.T) {
	b, s := readTables(t, Config{}, map[string]string{
		"prediction.csv": "vertex,p_-1,p_1\na,.2,.8\nb,.9,.1\n",
		"label.csv":      "vertex,label\na,1\nb,-1\n",
	})
	if got := s.Classes().Names; !slices.Equal(got, []string{"-1", "1"}) || len(b.Labels) != 2 ||
		b.Labels[0].Class != 1 || b.Labels[1].Class != 0 {
		t.Errorf("classes %v, labels %+v, refused %v", got, b.Labels, b.Refused)
	}
	b, _ = readTables(t, Config{}, map[string]string{
		"prediction.csv": "vertex,p0,p1\na,.2,.8\n", "label.csv": "vertex,label\na,2\nb,1\n",
	})
	if len(b.Refused) != 1 || !strings.Contains(b.Refused[0].Detail, "--classes=1,2") {
		t.Errorf("%v", b.Refused)
	}
	b, _ = readTables(t, Config{}, map[string]string{"edge.csv": "src,dst,weight\n1,2,0\n"})
	if len(b.Refused) != 1 || !strings.Contains(b.Refused[0].Detail, "; --map weight= reads") {
		t.Errorf("%v", b.Refused)
	}
}
