package web

import (
	"fmt"
	"testing"
)

// The history of a classifier has a judgement whenever a label was judged, by version and class,
// and stays bounded.
func TestClassifierHasAHistory(t *testing.T) {
	s := serve(t, nil)
	status := runningStatus(1)
	for n := range uint64(3 * judgementsMost) {
		status.Models[0].Classes[0].Judged = n
		status.Models[0].Classes[0].Accuracy = float64(n)
		s.Status(status)
		s.Status(status) // without a new label there is nothing to add
	}
	var got classifierAnswer
	getJSON(t, s, "/api/v1/classifier", &got)
	if n := len(got.History); n < judgementsMost/4 || n > judgementsMost {
		t.Errorf("%d judgements, want at most %d", n, judgementsMost)
	}
	for i, j := range got.History {
		if len(j.Accuracy) != 2 || j.Accuracy[0] == nil || j.Accuracy[1] != nil {
			t.Fatalf(
				"%d: accuracy %v, want one of the first class alone",
				i,
				fmt.Sprint(j.Accuracy),
			)
		}
		if i > 0 && j.Judged <= got.History[i-1].Judged {
			t.Fatalf("%d labels after %d", j.Judged, got.History[i-1].Judged)
		}
	}
}
