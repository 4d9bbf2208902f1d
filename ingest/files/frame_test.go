package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// A JSON value that holds a whole table is refused with a command that writes its rows, which have
// the edges of the table with all digits.
func TestTablesInOneJSONValue(t *testing.T) {
	const big = "12345678901234567"
	long := strings.Repeat(`"x",`, fileRowBytesMax/4) // a line that is longer than a row may be
	end := `"data":[["a",` + big + `],["b",3]]}`
	for _, x := range [][2]string{
		{"split", `{"columns":["src","dst"],"index":[0,1],` + end},
		{"without orient", `{"src":{"0":"a","1":"b"},"dst":{"0":` + big + `,"1":3}}`},
		{`orient="index"`, `{"0":{"src":"a","dst":` + big + `},"1":{"src":"b","dst":3}}`},
		{"place of 'src','dst'", "[[\"a\"," + big + "],\n[\"b\",3]]"},
		{"one list for each", `{"src":["a","b"],"dst":[` + big + `,3]}`},
		{"split", `{"index":[` + long + `0],"columns":["src","dst"],` + end},
		{"without orient", `{"from":{"0":1,"1":2},"x":{"0":3,"1":4}}`},
	} {
		want, text := x[0], x[1]
		path := writeFile(t, "edge.json", []byte(text))
		_, err := NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s", text, err, want)
			continue
		}
		if strings.Contains(text, "from") {
			continue // its columns have names of their own
		}
		_, command, _ := strings.Cut(err.Error(), "python3 -c")
		b, _ := readTables(t, Config{}, map[string]string{
			"edge.ndjson": runPython(t, command),
		})
		if got := ends(b); !slices.Equal(got, []string{"a>" + big, "b>3"}) || len(b.Refused) > 0 {
			t.Errorf("%.80q: %v, refused %v", text, got, b.Refused)
		}
	}
}

// A row below a table, such as the total of a spreadsheet, is warned of.
func TestRowsBelowATable(t *testing.T) {
	rows := func(form string, n int) string {
		text := ""
		for i := range n {
			text += strings.ReplaceAll(fmt.Sprintf(form, i, i+1), " ", ",") + "\n"
		}
		return text
	}
	for name, x := range map[string]struct{ kind, text, want string }{
		"count": {
			"edge", "src,dst\n" + rows("u%d u%d", 30) + "total,1200\n",
			`edge.csv:32: the id "1200" is unlike those of the 30 rows before it, which are names`,
		},
		"numbers": {
			"edge", "src,dst\n" + rows("%d %d", 30) + "Sum of all,1200\n",
			`:32: the id "Sum of all" is unlike those of the 30 rows before it, which are numbers`,
		},
		"three": {
			"edge", "src,dst\n" + rows("%d %d", 30) + "Total,30\nby x,1\nat,2\n",
			`:32: the id "Total" is unlike`,
		},
		"word":   {"edge", "src;dst\na;1\n2;b\nSumme:;1200\n", `:4: the last row is called`},
		"label":  {"label", "id,label\n" + rows("1%d%d 1", 30) + "Gesamt,1\n", `:32: the id "Ges`},
		"member": {"member", "community,vertex\na,1\na,2\nTotal,2\n", `called "Total"`},
		"json": {"edge.ndjson", strings.Repeat(`{"src":1,"dst":2}`+"\n", 30) +
			`{"src":"all","dst":30}`, `:31: the id "all" is unlike`},

		"mixed":   {"edge", "src,dst\n" + rows("u%d u%d", 5) + "7,u1\n" + rows("u%d u%d", 30), ""},
		"few":     {"edge", "src,dst\n" + rows("u%d u%d", 5) + "7,u1\n", ""},
		"middle":  {"edge", "src,dst\ntotal,a\n" + rows("u%d u%d", 30), ""},
		"earlier": {"edge", "src,dst\n" + rows("u%d u%d", 30) + "7,u1\n" + rows("u%d u%d", 3), ""},
	} {
		file := x.kind
		if !strings.Contains(file, ".") {
			file += ".csv"
		}
		_, s := readTables(t, Config{Classes: event.ClassSet{Count: 2}}, map[string]string{
			file: x.text,
		})
		got := strings.Join(slices.DeleteFunc(s.Warnings(), func(w string) bool {
			return !strings.Contains(w, "below the table")
		}), "|")
		if x.want == "" && got != "" || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
