package files

import (
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// Labels, predictions and posts of excepted vertices must be counted as not read, and neither as
// labels of a class nor as evidence of vertices with an edge.
func TestExceptedEvidenceIsCountedAsNotRead(t *testing.T) {
	items := Exception{Keys: []string{"kind"}, Holds: func(values []event.Value) bool {
		return values[0].Text == "item"
	}}
	tables := map[string]string{
		"vertex.csv":     "vertex,kind\na,person\nx,item\ny,item\nz,item\nz,person\n",
		"label.csv":      "vertex,label\na,no\nb,yes\nx,yes\nz,yes\n",
		"prediction.csv": "vertex,p_no,p_yes\na,.5,.5\nb,.5,.5\nx,.1,.9\ny,.1,.9\n",
		"post.csv":       "author,p_no,p_yes,reply_to\na,.5,.5,b\nx,.5,.5,\nx,.5,.5,y\n",
		"edge.csv":       "src,dst\na,b\na,x\nb,y\nb,z\n",
	}
	_, s := readTables(t, Config{Except: items}, tables)
	text := strings.Join(append(s.Summary(), s.Warnings()...), "\n")
	for _, want := range []string{
		"5 edges between 5 vertices, 2 of them with a prediction",
		"4 labels (no 1, yes 2; 1 not read: evidence.except): 3 of vertices with an edge, 2 of",
		"4 predictions (2 not read: evidence.except): 2 of vertices with an edge",
		"3 posts (2 not read: evidence.except) by 2 authors, 2 answers",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
	for _, c := range []struct {
		except Exception
		want   string
	}{
		{
			Exception{Keys: []string{"kind"}, Holds: func([]event.Value) bool { return false }},
			"evidence.except holds for no vertex",
		},
		{Exception{Keys: []string{"sort"}, Holds: func(values []event.Value) bool {
			return values[0].Text == "item"
		}}, `evidence.except holds for no vertex: none has the attribute "sort"`},
	} {
		_, s := readTables(t, Config{Except: c.except}, tables)
		if !slices.Contains(s.Warnings(), c.want) {
			t.Errorf("%q, want %s", s.Warnings(), c.want)
		}
		if text := strings.Join(s.Summary(), "\n"); strings.Contains(text, "not read") {
			t.Errorf("%s: nothing is excepted", text)
		}
	}
}
