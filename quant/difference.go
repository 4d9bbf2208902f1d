package quant

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// influenceNumbersMax bounds the numbers of an influence, which every record carries.
const influenceNumbersMax = 32

// influence sets ans.influence to the first columns of G L, K rows of them, where L L' is
// the covariance of the coefficients, by a Cholesky decomposition that takes the largest
// variance that is left first. L is the same for every community, so the product of two rows
// is the covariance of the errors of two communities.
func (x *posteriorScratch) influence(ans *answer, coefficients, g []float64) {
	k := ans.k
	size := len(g) / k
	columns := min(size, influenceNumbersMax/k)
	x.root = resize(x.root, size*(size+1))
	root, left := x.root[:size*size], x.root[size*size:]
	for i := range left {
		left[i] = coefficients[i*size+i]
	}
	ans.influence = ans.influence[:0]
	for c := range columns {
		at := 0
		for i, v := range left {
			if v > left[at] {
				at = i
			}
		}
		if !(left[at] > 0) {
			break
		}
		pivot := math.Sqrt(left[at])
		for i := range size {
			value := coefficients[i*size+at]
			for b := range c {
				value -= float64(root[b*size+i] * root[b*size+at])
			}
			root[c*size+i] = value / pivot
		}
		for i := range left {
			left[i] = max(left[i]-float64(root[c*size+i]*root[c*size+i]), 0)
		}
		left[at] = 0
		for a := range k {
			ans.influence = append(ans.influence, dot(root[c*size:(c+1)*size], g[a*size:(a+1)*size]))
		}
	}
}

// Difference returns by how much the shares of a exceed those of b, as a record of its own
// whose prevalences lie between -1 and 1 and sum to zero, with the standard errors and the
// interval of the difference at the confidence of a. With F the influence of the coefficients
// that both rest on, the variance of a class is V_a + V_b - 2 F_a F_b': what the labels made wrong
// in both cancels. What else both share (labels next to both, members) would only narrow it further.
// Records of different coefficients share nothing. Position and time are those of the newer record.
// It returns an error where the records are not of one method and kind.
func Difference(a, b *Estimate) (Estimate, error) {
	k := len(a.Prevalence)
	if k == 0 || len(b.Prevalence) != k || len(a.SE) != k || len(b.SE) != k || a.Method != b.Method {
		return Estimate{}, fmt.Errorf("quant: no difference of %q (%s) and %q (%s): both must have an estimate by one method",
			a.Community, a.Method, b.Community, b.Method)
	}
	d := Estimate{
		Pipeline: a.Pipeline, Community: "difference(" + a.Community + ", " + b.Community + ")", Method: a.Method, Kernel: a.Kernel,
		Position: a.Position, Time: a.Time, Confidence: a.Confidence, Config: a.Config, ModelVersion: a.ModelVersion,
		Members: min(a.Members, b.Members), NEff: []float64{}, Flags: append([]string{}, a.Flags...),
	}
	if a.Position < b.Position {
		d.Position, d.Time = b.Position, b.Time
	}
	z := normalQuantile(cmp.Or(a.Confidence, confidenceDefault))
	shared := 0
	if a.Posterior == b.Posterior && a.Posterior > 0 {
		shared = min(len(a.Influence), len(b.Influence)) / k
	}
	for i := range k {
		v := a.SE[i]*a.SE[i] + b.SE[i]*b.SE[i]
		for c := range shared {
			v -= 2 * float64(a.Influence[c*k+i]*b.Influence[c*k+i])
		}
		se := max(math.Sqrt(max(v, 0)), math.Abs(a.SE[i]-b.SE[i]))
		x := a.Prevalence[i] - b.Prevalence[i]
		d.Prevalence, d.SE = append(d.Prevalence, x), append(d.SE, se)
		d.Low, d.High = append(d.Low, max(x-z*se, -1)), append(d.High, min(x+z*se, 1))
	}
	for _, flag := range b.Flags {
		if !slices.Contains(a.Flags, flag) {
			d.Flags = append(d.Flags, flag)
		}
	}
	return d, nil
}
