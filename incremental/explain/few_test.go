package explain

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant"
)

// Under a privacy floor, one member who joins must not reveal her label: neither her class,
// nor her part of a change among many others.
func TestAnExplanationHidesFewChanges(t *testing.T) {
	x := &quant.Explanation{Causes: []quant.Cause{
		{
			Kind: quant.CauseJoined, Changes: 1, Contribution: []float64{-0.05, 0.05},
			Details: []quant.Detail{{What: "labelled right", Count: 1}},
			Largest: []quant.Effect{{Vertex: "alice"}},
		},
		{
			Kind: quant.CausePredictions, Changes: 40, Contribution: []float64{0.02, -0.02},
			Details: []quant.Detail{{What: "of members", Count: 39}, {What: "of others", Count: 1}},
		},
		{
			Kind: quant.CauseEdges, Changes: 12, Contribution: []float64{0.01, -0.01},
			Details: []quant.Detail{{What: "new", Count: 12}},
		},
		{
			Kind: quant.CauseGamma, Contribution: []float64{0.001, -0.001},
			Details: []quant.Detail{{What: "0.1, before 0.2"}},
		},
	}}
	HideFew(x, 11)
	var kinds []string
	for _, c := range x.Causes {
		kinds = append(kinds, c.Kind)
		if c.Largest != nil {
			t.Errorf("%s names a vertex", c.Kind)
		}
	}
	if want := []string{"predictions", "gamma", "few"}; !slices.Equal(kinds, want) {
		t.Fatalf("causes %q, want %q", kinds, want)
	}
	few := x.Causes[2]
	if few.Changes != 13 || len(few.Details) > 0 || few.Contribution[1] != 0.05-0.01 {
		t.Errorf("%+v", few)
	}
	if len(x.Causes[0].Details) > 0 {
		t.Errorf("details that count one: %v", x.Causes[0].Details)
	}
}

// Whatever the causes, no part of an answer may rest on fewer changes than the floor, and
// the contributions must have the same sum.
func TestExplanationsRestOnTheFloorAtLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 7))
	for range 5000 {
		x, sum, floor := &quant.Explanation{}, make([]float64, 2), 2+r.IntN(12)
		for _, kind := range []string{"joined", "left", "predictions", "labels", "edges"} {
			if r.IntN(2) == 0 {
				continue
			}
			c := quant.Cause{Kind: kind, Contribution: []float64{r.Float64(), r.Float64()}}
			for range 1 + r.IntN(3) {
				n := 1 + r.IntN(30)
				c.Changes += n
				c.Details = append(c.Details, quant.Detail{What: kind, Count: n})
			}
			floats.Add(sum, c.Contribution)
			x.Causes = append(x.Causes, c)
		}
		HideFew(x, floor)
		for _, c := range x.Causes {
			floats.Sub(sum, c.Contribution)
			alone := c.Kind == quant.CauseFew && len(x.Causes) == 1 && c.Changes == 0
			if c.Changes < floor && !alone {
				t.Fatalf("floor %d: %+v", floor, x.Causes)
			}
			for _, d := range c.Details {
				if d.Count < floor {
					t.Fatalf("floor %d: %+v", floor, c)
				}
			}
		}
		if floats.Norm(sum, 1) > 1e-9 {
			t.Fatalf("contributions differ by %v", sum)
		}
	}
}
