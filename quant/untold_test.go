package quant_test

import (
	"slices"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// Where the classifier says the same of every vertex, no count, plain or adjusted, may be more
// certain than having no information: its interval holds nearly every share.
func TestMissingInputIsNoInformation(t *testing.T) {
	counts := slices.DeleteFunc(quant.Methods(), func(m quant.Method) bool {
		return slices.Contains([]quant.Method{"mlpe", "diff", "auto", "audit"}, m)
	})
	for _, own := range [][]float64{{1, 0, 0}, {0.5, 0.25, 0.25}} {
		w := syntheticWorld(3, 120, 300, 5)
		for v := range w.predictions {
			w.predictions[v] = own
		}
		w.describe()
		masses := w.masses(personalised, w.communities)
		for _, method := range counts {
			o := quant.DefaultOptions()
			o.Method = method
			var e quant.Estimate
			if err := new(quant.Solver).Estimate(
				&e, w.statistics(w.communities[1], masses[1]), o); err != nil {
				t.Fatal(err)
			}
			for i := range e.Low {
				if width := e.High[i] - e.Low[i]; width < 0.95 {
					t.Errorf("%s of %v: class %d has [%.3f, %.3f], want nearly [0, 1]",
						method, own, i, e.Low[i], e.High[i])
				}
			}
		}
	}
}

// A plain count with labels of one class only names the classes without labels where it has no
// information, so that its interval is explained.
func TestCountWithLabelsOfOneClassNamesTheOthers(t *testing.T) {
	for _, method := range []quant.Method{"cc", "pcc"} {
		n := []float64{3, 0, 0, 0}
		cells := &stats.Cells{Z: 2, P: []float64{1, 0}, N: n, A1: n, A2: n}
		s := &stats.Statistics{
			K: 2, Members: 100, Profiled: 100, Anchored: make([]float64, 2), Soft: cells,
			Hard:   cells,
			ClassN: n[:2], ClassA1: n[:2], ClassA2: n[:2], OwnVariance: make([]float64, 2),
		}
		o := quant.DefaultOptions()
		o.Method = method
		var e quant.Estimate
		if err := new(quant.Solver).Estimate(&e, s, o); err != nil {
			t.Fatal(err)
		}
		want := []string{quant.FlagUnsupported + ":1"}
		if e.High[0]-e.Low[0] < 0.9 || !slices.Equal(e.Flags, want) {
			t.Errorf(
				"%s: [%.3f, %.3f] with %v, want %v", method, e.Low[0], e.High[0], e.Flags, want,
			)
		}
	}
}

// A plain count without labels is as certain as its members' predictions are different: where all
// are equal nothing shows that the classifier tells the classes apart.
func TestEqualPredictionsWithoutLabelsAreNoInformation(t *testing.T) {
	for _, method := range []quant.Method{"cc", "pcc"} {
		for _, test := range []struct {
			p        []float64 // of all members, on average
			variance float64
			wide     bool
		}{{[]float64{1, 0}, 0, true}, {[]float64{0.75, 0.25}, 3. / 16, false}} {
			cells := &stats.Cells{
				Z: 2, P: test.p, N: make([]float64, 4), A1: make([]float64, 4),
				A2: make([]float64, 4),
			}
			s := &stats.Statistics{
				K: 2, Members: 100, Profiled: 100, Anchored: make([]float64, 2), Soft: cells,
				Hard: cells,
				ClassN: make(
					[]float64,
					2,
				), ClassA1: make([]float64, 2), ClassA2: make([]float64, 2),
				OwnVariance: []float64{test.variance, test.variance},
			}
			o := quant.DefaultOptions()
			o.Method = method
			var e quant.Estimate
			if err := new(quant.Solver).Estimate(&e, s, o); err != nil {
				t.Fatal(err)
			}
			if width := e.High[0] - e.Low[0]; width == 0 || (width > 0.9) != test.wide {
				t.Errorf("%s of %v: [%.3f, %.3f]", method, test.p, e.Low[0], e.High[0])
			}
		}
	}
}
