package quant_test

import (
	"slices"
	"testing"

	"gqlstream/quant"
)

// Where the classifier says the same of every vertex, an adjusted count must not be more certain than
// having no information: its interval holds nearly every share.
func TestNothingToldIsNoInformation(t *testing.T) {
	adjusted := slices.DeleteFunc(quant.Methods(), func(m quant.Method) bool {
		return slices.Contains([]quant.Method{"mlpe", "cc", "pcc", "diff", "auto", "audit"}, m)
	})
	for _, own := range [][]float64{{1, 0, 0}, {0.5, 0.25, 0.25}} {
		w := syntheticWorld(3, 120, 300, 5)
		for v := range w.predictions {
			w.predictions[v] = own
		}
		w.describe()
		masses := w.masses(personalised, w.communities)
		for _, method := range adjusted {
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
