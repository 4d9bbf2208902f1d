package files

import (
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// Columns of probabilities that are not recognised are refused with a flag that helps.
func TestUnknownProbabilitiesNameTheFlag(t *testing.T) {
	for _, test := range []struct {
		classes []string
		header  string
		want    string
	}{
		{nil, "vertex,left,right", "--map p_left=left,p_right=right"},
		{[]string{"left", "right"}, "vertex,left,right", "--map p_left=left,p_right=right"},
		{[]string{"for", "against"}, "vertex,p_left,p_right", "--map p_for=COLUMN,p_agai"},
		{[]string{"for", "against"}, "vertex,x", "--map class=x"},
	} {
		c := newColumns(event.KindPrediction, nil, test.classes)
		_, err := c.setHeader(strings.Split(test.header, ","))
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "p_p_") {
			t.Errorf("%v, %s: %v, want %s", test.classes, test.header, err, test.want)
		}
	}
}
