package quant_test

import (
	"math"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// Members that agree with their neighbours have a smaller effective number: pairs of one class have
// the error of half as many members, and a community of one class that of one member.
func TestMembersThatAgreeAreFewer(t *testing.T) {
	const n = 100
	none := stats.NewResiduals(2)
	for range 1000 {
		none.Add(0, 1, []float64{.7, .3})
		none.Add(1, 1, []float64{.3, .7})
	}
	for _, times := range []float64{1, 3} {
		variance := func(inside, degrees float64, agreement []float64) float64 {
			p := &stats.Posterior{
				Version: 1, Prior: []float64{.5, .5}, LabelGate: 1, Selected: stats.ByPlace,
				Residuals: none, Within: make([]float64, 4),
				Distinct: n, Inside: inside, Degrees: degrees, Agreement: agreement,
				Means: []float64{.7, .3}, Counts: []float64{n * times}, Squares: n * times * times,
			}
			e := estimate(t, &stats.Statistics{
				K: 2, Members: n * times, Profiled: n * times, Anchored: make([]float64, 2),
				Posterior: p,
				ClassN: []float64{
					1000,
					1000,
				}, ClassA1: make([]float64, 2), ClassA2: make([]float64, 2),
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
			if got := variance(c.inside, c.degrees, c.agreement) - alone; math.Abs(
				got-want,
			) > 1e-9 {
				t.Errorf(
					"%s, %v times: the variance is %.6f greater, want %.6f", c.name, times, got,
					want,
				)
			}
		}
	}
}

// setMembers gives a posterior a cell for every member, of this multiplicity and posterior.
func setMembers(p *stats.Posterior, each func(visit func(multiplicity float64, pi []float64))) {
	p.Means, p.Counts, p.Squares = nil, nil, 0
	each(func(multiplicity float64, pi []float64) {
		p.Means = append(p.Means, pi...)
		p.Counts = append(p.Counts, multiplicity)
		p.Squares += multiplicity * multiplicity
	})
}

// weighted returns the effective number of labels of weights g (r a + s), and the variances of
// their mean residual.
func weighted(l *stats.Residuals, r, s float64) (effective float64, variances []float64) {
	w, d := stats.Weighting{R: r, S: s}, make([]float64, l.K)
	variances = make([]float64, l.K)
	l.Mean(d, w)
	l.Variance(variances, d, w)
	return l.Effective(w), variances
}

// multiplied returns the sums of labels that count n times each, with masses scaled by f.
func multiplied(r *stats.Residuals, n, f float64) *stats.Residuals {
	times := func(x []float64, by float64) []float64 {
		out := make([]float64, len(x))
		for i, v := range x {
			out[i] = by * v
		}
		return out
	}
	out := *r
	out.Sum, out.Mass = n*r.Sum, n*f*r.Mass
	out.First = [2][]float64{times(r.First[0], n), times(r.First[1], n*f)}
	out.Squares = [3]float64{n * r.Squares[0], n * f * r.Squares[1], n * f * f * r.Squares[2]}
	out.Weighted = func(w stats.Weighting) *stats.Residuals {
		x := *r.Weighted(stats.Weighting{Lambda: w.Lambda, R: w.R * f, S: w.S})
		x.Sum, x.Squares[0] = n*x.Sum, n*x.Squares[0]
		x.FirstSquare, x.Second = times(x.FirstSquare, n), times(x.Second, n)
		return &x
	}
	return &out
}
