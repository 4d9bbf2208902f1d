package auto

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/lapack/lapack64"

	"gqlstream/quant/solve"
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
	solve.Cholesky(factor, size)
	solve.CholeskyInverse(inverse, factor, size)
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
		_, rank, _ := lapack64.Pstrf(solve.Symmetric(factor, size), pivots, -1, work)
		for c := 1; c < min(columns, rank+1); c++ {
			for i := c - 1; i < size; i++ {
				influence[c*k+class] += float64(factor[i*size+c-1] * row[pivots[i]])
			}
		}
	}
	return influence
}
