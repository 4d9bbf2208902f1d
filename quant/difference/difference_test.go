package difference_test

import (
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/difference"
)

// A difference has the newer position and its time, suppressed or not. If a method is configured
// twice, the first one counts.
func TestADifferenceIsOfTheNewerAndTheFirst(t *testing.T) {
	record := func(community string, position uint64, at string, share float64) quant.Estimate {
		return quant.Estimate{
			Community: community, Position: position, Time: at, Method: "acc",
			Prevalence: []float64{share, 1 - share}, SE: []float64{0.1, 0.1},
		}
	}
	var fold difference.Fold
	fold.Want("difference(a, b)", nil)
	whole, later := "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.5Z"
	fold.Take([]quant.Estimate{record("b", 1, whole, 0.25)})
	got := fold.Take([]quant.Estimate{record("a", 2, later, 0.75), record("a", 2, later, 0.5)})
	if len(got) != 1 || got[0].Prevalence[0] != 0.5 || got[0].Position != 2 ||
		got[0].Time != later {
		t.Errorf("%+v", got)
	}
	got = fold.Take(
		[]quant.Estimate{
			{Community: "b", Position: 3, Time: "2026-03-01T12:00:01Z", Suppressed: true},
		},
	)
	if len(got) != 1 || !got[0].Suppressed || got[0].Time != "2026-03-01T12:00:01Z" {
		t.Errorf("%+v", got)
	}
	got = fold.Take([]quant.Estimate{record("a", 4, "2026-03-01T12:00:01.25Z", 0.5)})
	if len(got) != 1 || !got[0].Suppressed || got[0].Position != 4 ||
		got[0].Time != "2026-03-01T12:00:01.25Z" {
		t.Errorf("%+v", got)
	}
}

// The movements of a difference must add up to its change, for a movement of either community, and
// a revision of one is a revision of the difference.
func TestADifferenceMovesByWhatItsCommunitiesMove(t *testing.T) {
	var fold difference.Fold
	fold.Want("difference(a, b)", nil)
	record := func(community string, position uint64, share, moved,
		revised float64,
	) quant.Estimate {
		e := quant.Estimate{
			Community: community, Position: position, Method: "acc",
			Prevalence: []float64{share, 1 - share}, SE: []float64{0.1, 0.1},
		}
		if position > 1 {
			e.Moved, e.SEChange = []float64{moved, -moved}, []float64{0.03, 0.03}
			e.Revised, e.SERevised = []float64{revised, -revised}, []float64{0, 0}
		}
		return e
	}
	first := fold.Take([]quant.Estimate{record("a", 1, 0.5, 0, 0), record("b", 1, 0.25, 0, 0)})
	if len(first) != 1 || first[0].Moved != nil {
		t.Fatalf("the first difference has moved: %+v", first)
	}
	share := first[0].Prevalence[0]
	for _, list := range [][]quant.Estimate{
		{record("a", 2, 0.75, 0.25, 0)},
		{record("b", 3, 0.5, 0.125, 0.125)},
		{record("a", 4, 0.25, -0.5, 0), record("b", 4, 0.25, 0, -0.25)},
	} {
		got := fold.Take(list)
		if len(got) != 1 {
			t.Fatalf("%d differences", len(got))
		}
		change := got[0].Prevalence[0] - share
		if got[0].Moved[0]+got[0].Revised[0] != change || got[0].SEChange[0] < 0.03 {
			t.Errorf("position %d: changed by %v: %+v", list[0].Position, change, got[0])
		}
		share = got[0].Prevalence[0]
	}
}
