package web

import (
	"errors"
	"testing"

	"gqlstream/incremental/ask"
)

// The hook must get the question unchanged, and its answer must fit the schema. An
// impossible draw must be refused with the reason.
func TestQuestionsForLabelsAreAnswered(t *testing.T) {
	o := readOpenAPI(t)
	var asked ask.Question
	var fail error
	s := serve(t, func(c *Config) {
		c.Ask = func(q ask.Question) (*ask.Answer, error) {
			asked = q
			label := "yes"
			return &ask.Answer{
				Position: 7, Fresh: 1, Offers: []ask.Offer{{
					Community: "x", Labels: 2,
					HalfWidth: 0.1,
				}}, Others: []ask.Offer{},
				When: []ask.When{{Community: "x", Now: true, Reason: "opinions have moved lately"}},
				Advice: []ask.Advice{
					{Community: "x", Name: "yes", Share: 0.5, Effective: 30, More: 30},
				},
				Drawn: []ask.Drawn{
					{Vertex: "a", Role: "audit", Pi: 0.25},
					{Vertex: "b", Role: "audit", Pi: 0.5, Label: &label},
				},
			}, fail
		}
	})
	const path = "/api/v1/communities/x%2Fy/ask"
	code, _, body := get(t, s, path+"?count=20")
	if code != 200 || asked.Count != 20 || len(asked.Communities) != 1 ||
		asked.Communities[0] != "x/y" {
		t.Fatalf("%d %s; asked %+v", code, body, asked)
	}
	o.fits(t, path, o.at(map[string]any(o), "components", "schemas", "Asked"), body)
	for query, want := range map[string]int{"?count=0": 400, "?count=x": 400, "?seed=1": 400} {
		if code, _, body := get(t, s, path+query); code != want {
			t.Errorf("%s: %d %s, want %d", query, code, body, want)
		}
	}
	fail = errors.New("ask: there is no checkpoint yet")
	if code, _, body := get(t, s, path); code != 409 {
		t.Errorf("without a checkpoint: %d %s", code, body)
	}
}
