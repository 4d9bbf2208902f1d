package difference_test

import (
	"testing"

	"gqlstream/difference"
	"gqlstream/quant"
)

// A difference is of the newer position and its time, suppressed or not, and of a method that is
// configured twice it is that of the first.
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
