package files

import (
	"fmt"
	"strings"

	"gqlstream/ingest/event"
)

const (
	// footerRowsMin rows must have ids of one kind before a last row of another kind is warned of.
	footerRowsMin = 20
	// footerRowsMax is the number of rows that may stand below a table.
	footerRowsMax = 3
)

// footerAdvice is the remedy for a row below a table.
const footerAdvice = "if it is a total or a note below the table, remove it"

// totals are names of the last row of a table in spreadsheets and pivot tables.
var totals = map[string]bool{
	"total": true, "totals": true, "grand total": true, "subtotal": true, "sum": true,
	"average": true, "mean": true, "summe": true, "gesamt": true, "insgesamt": true,
	"gesamtsumme": true, "gesamtergebnis": true, "mittelwert": true, "somme": true,
	"total général": true, "total general": true, "totale": true, "totaal": true, "suma": true,
	"итого": true, "всего": true, "合計": true, "总计": true, "toplam": true,
}

// footer looks for a row below a table, such as a total that a spreadsheet has added: its ids are
// numbers where those of all rows before are names, or names where those are numbers, or it is
// called like a total.
type footer struct {
	rows    int
	numbers [2]int // rows with a number in this column, before the first row of the other kind
	names   [2]int
	other   [2]string // the first id of the other kind; "": there is none
	place   [2]int64  // its row
	at      [2]int    // and how many rows are before it
}

// see notes the ids of a row.
func (f *footer) see(ids [2]event.ID, place int64) {
	for i, id := range ids {
		if f.other[i] != "" {
			continue
		}
		if id.Name == "" {
			f.numbers[i]++
		} else {
			f.names[i]++
		}
		if f.numbers[i] > 0 && f.names[i] > 0 {
			f.other[i], f.place[i], f.at[i] = strings.Clone(id.String()), place, f.rows
		}
	}
	f.rows++
}

// idsOf returns the ids of an event.
func idsOf(b *event.Batch, kind event.Kind, i int) [2]event.ID {
	var id event.ID
	switch kind {
	case event.KindEdge:
		return [2]event.ID{b.Edges[i].Src, b.Edges[i].Dst}
	case event.KindLabel:
		id = b.Labels[i].Vertex
	case event.KindPrediction:
		id = b.Predictions[i].Vertex
	case event.KindPost:
		id = b.Posts[i].Author
	case event.KindMember:
		id = b.Members[i].Vertex
	case event.KindVertex:
		id = b.Vertices[i].Vertex
	case event.KindControl: // it has none
	default:
		panic("files: no ids of " + kind.String() + " events")
	}
	return [2]event.ID{id, id}
}

// footerWarning warns of a row below the table.
func (s *fileStream) footerWarning() []string {
	f := &s.footer
	for i, id := range f.other {
		if id != "" && f.at[i] >= footerRowsMin && f.rows-f.at[i] <= footerRowsMax {
			what := map[bool]string{true: "numbers", false: "names"}[f.numbers[i] > 1]
			return []string{fmt.Sprintf("%s:%d: the id %q is unlike those of the %s rows before "+
				"it, which are %s: %s", s.tally.Path, f.place[i], id, grouped(f.at[i]), what,
				footerAdvice)}
		}
	}
	if text, is := s.table.(*csvTable); is && s.ended {
		for slot := range s.columns.known {
			word := ""
			if slot < len(s.row.cells) && s.columns.known[slot].Required {
				word = s.row.cells[slot].Text
			}
			if isTotal(word) {
				return []string{fmt.Sprintf("%s:%d: the last row is called %q: %s",
					s.tally.Path, text.place(), word, footerAdvice)}
			}
		}
	}
	return nil
}
