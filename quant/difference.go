package quant

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// influenceNumbersMax bounds the numbers of an influence, which every record carries.
	influenceNumbersMax = 32
	pivotMin            = 1e-12 // of a variance, below which what is left of it is rounding
)

// influence returns, by column and class, the influence of the labels on an estimate. The product of two rows of
// one class is the covariance that the labels give its errors in two communities, G_a Cov(theta, b) G_b', with G = g
// the derivative of q(gamma) alone: a label of residual r and score s moves the coefficients by Cov s, and a regression
// on s of its part w r of d takes off by what these move d. Of w r the rest is shared by communities near the same
// labels only.
//
// The first columns of a root of Cov, the same for every community, stand for it. That of a class begins with
// the variance of its intercept where all else is known, which moves as the mean residual of all
// labels does: nearly all that is shared. Then Cholesky's take the largest variance that is left first.
func influence(k int, coefficients, g []float64) []float64 {
	size := len(g) / k
	columns := min(size, influenceNumbersMax/k)
	root, inverse, left := slices.Clone(coefficients), make([]float64, size*size), make([]float64, size)
	cholesky(root, size)
	choleskyInverse(inverse, root, size)
	influence := make([]float64, columns*k)
	for class := range k {
		for i := range left {
			left[i] = coefficients[i*size+i]
		}
		at := size - k + class
		clear(root)
		root[at] = 1 / math.Sqrt(inverse[at*size+at])
		left[at] -= root[at] * root[at]
		for c := 1; c < columns; c++ {
			at := slices.Index(left, slices.Max(left))
			if !(left[at] > pivotMin*coefficients[at*size+at]) {
				break
			}
			pivot := math.Sqrt(left[at])
			for i := range left {
				value := coefficients[i*size+at]
				for b := range c {
					value -= float64(root[b*size+i] * root[b*size+at])
				}
				root[c*size+i] = value / pivot
				left[i] -= root[c*size+i] * root[c*size+i]
			}
			left[at] = 0
		}
		for c := range columns {
			influence[c*k+class] = dot(root[c*size:(c+1)*size], g[class*size:(class+1)*size])
		}
	}
	return influence
}

// Difference returns by how much the shares of a exceed those of b, as a record of its own
// whose prevalences lie between -1 and 1 and sum to zero, with the standard errors and the
// interval of the difference at the confidence of a. With F the influence of the labels that both
// rest on, the variance of a class is V_a + V_b - 2 F_a F_b': what they made wrong in both
// cancels. What else both share (labels next to both, members) would only narrow it further. Records
// of different coefficients share nothing. Position and time are those of the newer record.
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
		low, high := -1.0, 1.0
		if len(a.Low) == k && len(b.Low) == k { // beyond these one of the intervals misses, at its own odds
			low, high = a.Low[i]-b.High[i], a.High[i]-b.Low[i]
		}
		d.Low, d.High = append(d.Low, max(x-z*se, low)), append(d.High, min(x+z*se, high))
	}
	for _, flag := range b.Flags {
		if !slices.Contains(a.Flags, flag) {
			d.Flags = append(d.Flags, flag)
		}
	}
	return d, nil
}
