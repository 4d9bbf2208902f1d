package ask

import (
	"bytes"
	"strings"
	"testing"
)

// An id must not become a formula in the spreadsheet of an annotator.
func TestTheListHoldsNoFormulas(t *testing.T) {
	list := Answer{Drawn: []Drawn{{Vertex: "=1+1"}, {Vertex: "plain"}}}
	var out bytes.Buffer
	if err := list.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "\n=1+1") ||
		!strings.Contains(text, "\n'=1+1") || !strings.Contains(text, "\nplain") {
		t.Error(text)
	}
}
