package quant

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/lapack/lapack64"
)

// influenceNumbersMax bounds the numbers of an influence, which every record carries.
const influenceNumbersMax = 32

// influence returns, by column and class, the influence of the labels on an estimate. The product
// of two rows of one class is the covariance that the labels give its errors in two communities,
// G_a Cov(theta, b) G_b', with G = g the derivative of q(gamma) alone: a label of residual r and
// score s moves the coefficients by Cov s, and a regression on s of its part w r of d takes off by
// what these move d. Of w r the rest is shared by communities near the same labels only.
//
// The first columns of a root of Cov, the same for every community, stand for it. That of a class
// begins with the variance of its intercept where all else is known, which moves as the mean
// residual of all labels does: nearly all that is shared. Then Cholesky's take the largest variance
// that is left first.
func influence(k int, coefficients, g []float64) []float64 {
	size := len(g) / k
	columns := min(size, influenceNumbersMax/k)
	if columns == 0 {
		return nil // of more classes than numbers
	}
	factor, inverse := slices.Clone(coefficients), make([]float64, size*size)
	cholesky(factor, size)
	choleskyInverse(inverse, factor, size)
	influence := make([]float64, columns*k)
	pivots := make([]int, size)
	work := make([]float64, 2*size)
	for class := range k {
		at, row := size-k+class, g[class*size:(class+1)*size]
		variance := 1 / inverse[at*size+at]
		if influence[class] = math.Sqrt(variance) * row[at]; columns == 1 {
			continue
		}
		copy(factor, coefficients)
		factor[at*size+at] -= variance
		_, rank, _ := lapack64.Pstrf(symmetric(factor, size), pivots, -1, work)
		for c := 1; c < min(columns, rank+1); c++ {
			for i := c - 1; i < size; i++ {
				influence[c*k+class] += float64(factor[i*size+c-1] * row[pivots[i]])
			}
		}
	}
	return influence
}

// Difference returns by how much the shares of a exceed those of b, as a record of its own whose
// prevalences lie between -1 and 1 and sum to zero, with the standard errors and the interval of
// the difference at the confidence of a. With F the influence of the labels that both rest on, the
// variance of a class is V_a + V_b - 2 F_a F_b': what they made wrong in both cancels. What else
// both share (labels next to both, members) would only narrow it further. Records of different
// coefficients share nothing. Position and time are those of the newer record. It returns an error
// where the records are not of one method and kind.
func Difference(a, b *Estimate) (Estimate, error) {
	k := len(a.Prevalence)
	if k == 0 || len(b.Prevalence) != k || len(a.SE) != k || len(b.SE) != k ||
		a.Method != b.Method {
		return Estimate{},
			fmt.Errorf(
				"quant: no difference of %q (%s) and %q (%s): both must have an estimate by "+
					"one method",
				a.Community,
				a.Method,
				b.Community,
				b.Method,
			)
	}
	d := Estimate{
		Pipeline: a.Pipeline, Community: "difference(" + a.Community + ", " + b.Community + ")",
		Method: a.Method, Kernel: a.Kernel,
		Position: a.Position, Time: a.Time, Confidence: a.Confidence, Config: a.Config,
		ModelVersion: a.ModelVersion,
		Members:      min(a.Members, b.Members), NEff: []float64{},
		Flags: append([]string{}, a.Flags...),
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
		// beyond these one of the intervals misses, at its own odds
		if len(a.Low) == k && len(b.Low) == k {
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
