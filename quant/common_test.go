package quant_test

import (
	"math"
	"testing"

	"gqlstream/quant"
)

// Members of a place whose classes are those of their neighbours are fewer than they seem: of pairs that are of one class
// the error is that of half as many members, and of neighbours that all are of one class that of one.
func TestMembersThatAgreeAreFewer(t *testing.T) {
	const n = 100
	none := quant.NewResiduals(2)
	for range 1000 {
		none.Add(0, 1, []float64{.7, .3})
		none.Add(1, 1, []float64{.3, .7})
	}
	for _, times := range []float64{1, 3} {
		variance := func(inside, degrees float64, agreement []float64) float64 {
			p := &quant.Posterior{
				Version: 1, Prior: []float64{.5, .5}, LabelGate: 1, Selected: quant.ByPlace, Residuals: none, Within: make([]float64, 4),
				Distinct: n, Inside: inside, Degrees: degrees, Agreement: agreement,
				Means: []float64{.7, .3}, Counts: []float64{n * times}, Squares: n * times * times,
			}
			e := estimate(t, &quant.Statistics{
				K: 2, Members: n * times, Profiled: n * times, Anchored: make([]float64, 2), Posterior: p,
				ClassN: []float64{1000, 1000}, ClassA1: make([]float64, 2), ClassA2: make([]float64, 2),
			}, quant.Options{Method: quant.Auto})
			return e.SE[0] * e.SE[0]
		}
		alone := variance(0, 5*n, []float64{1, 1})
		for _, c := range []struct {
			name                    string
			inside, degrees, expect float64
			agreement               []float64
		}{
			{"pairs", n / 2, n, 1, []float64{1, 0}},
			{"pairs two steps apart", n / 2, n, 1, []float64{0, 1}},
			{"one and two steps apart", n, 4 * n, 2, []float64{.5, 1}},
			{"everybody", n * (n - 1) / 2, n * (n - 1), n - 1, []float64{1, 1}},
		} {
			want := c.expect * .21 / n
			if got := variance(c.inside, c.degrees, c.agreement) - alone; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, %v times: the variance is %.6f greater, want %.6f", c.name, times, got, want)
			}
		}
	}
}
