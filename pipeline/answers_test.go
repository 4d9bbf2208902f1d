package pipeline

import (
	"errors"
	"strings"
	"testing"

	"gqlstream/sinks/web"
)

// Rows without a label are passed over; a file that holds none, or is no table, is refused.
func TestAnsweredRowsAreThoseWithALabel(t *testing.T) {
	for _, c := range []struct{ text, want, refused string }{
		{
			"vertex,label,role,pi\na,yes,audit,.5\nb,,audit,.5\n",
			"vertex,label,role,pi\na,yes,audit,.5\n", "",
		},
		{"\xef\xbb\xbfvertex;label;pi\na;yes;.5\nb; ;.5\n", "vertex,label,pi\na,yes,.5\n", ""},
		{"vertex,label\na,\n", "", "no row has a label"},
		{"name,label\na,yes\n", "", "columns vertex and label"},
		{"", "", "columns vertex and label"},
		{"vertex,label\n\"a\n", "", "is no CSV"},
	} {
		got, err := answered([]byte(c.text))
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q: error %v, want %q", c.text, err, c.refused)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%q: %q, %v; want %q", c.text, got, err, c.want)
		}
	}
}

// A refusal names the line, and no file that the reader does not have.
func TestRefusedAnswersNameTheLine(t *testing.T) {
	err := withoutPath(
		refuseAnswers(errors.New("/tmp/x/answers.csv:2: class zz")),
		"/tmp/x/answers.csv",
	)
	var refusal *web.Refusal
	if !errors.As(err, &refusal) || refusal.Message != "nothing was published: line 2: class zz" {
		t.Errorf("%v", err)
	}
}
