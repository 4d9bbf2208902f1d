package quant_test

import (
	"math"
	"slices"
	"testing"

	"gqlstream/quant"
)

// strangers are statistics of two classes whose labels are predicted as they are, with
// neighbours of their own class, where the given share of the members has neighbours of
// the other class: no label shows that.
func strangers(share float64) *quant.Statistics {
	s := &quant.Statistics{
		K: 2, Members: 100, Profiled: 100, Squares: 100,
		Anchored: make([]float64, 2), ClassN: []float64{50, 50}, ClassA1: make([]float64, 2), ClassA2: make([]float64, 2),
	}
	own := []float64{.2 + .5*share, .8 - .5*share} // .2 of those that are like labels are of class 0, .7 of the strangers
	s.Soft = &quant.Cells{Z: 2, P: own, N: []float64{50, 0, 0, 50}, A1: make([]float64, 4), A2: make([]float64, 4)}
	s.SoftPair = &quant.Cells{
		Z: 4, P: []float64{.2 * (1 - share), .7 * share, .3 * share, .8 * (1 - share)},
		N: []float64{50, 0, 0, 0, 0, 0, 0, 50}, A1: make([]float64, 8), A2: make([]float64, 8),
	}
	return s
}

// What no label shows must widen the interval in step with its share, from nothing to
// anything, and be flagged.
func TestProfilesThatNoLabelShowsLeaveThingsOpen(t *testing.T) {
	for _, share := range []float64{0, .1, .3, .6, 1} {
		s, truth := strangers(share), .2+.5*share
		for _, method := range []quant.Method{quant.NACC, "nacc-ml", quant.ML} {
			e, err := quant.Quantify(s, quant.Options{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if flagged := slices.Contains(e.Flags, quant.FlagUnseen); flagged != (share > .2) {
				t.Errorf("%s, %v unseen: flags %v", method, share, e.Flags)
			}
			if e.Low[0] > truth || e.High[0] < truth {
				t.Errorf("%s, %v unseen: %v to %v, truth %v", method, share, e.Low[0], e.High[0], truth)
			}
			if open := share * math.Sqrt(.125); e.SE[0] < open-1e-6 || e.SE[0] > open+.06 {
				t.Errorf("%s, %v unseen: error %v, want at least %v", method, share, e.SE[0], open)
			}
		}
	}
}
