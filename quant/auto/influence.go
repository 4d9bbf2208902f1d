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
// G_a Cov(theta, b) G_b'. G = g is the derivative of q(gamma) alone, without that of d. A label of
// residual r and score s moves the coefficients by Cov s, and adds w r to d. The part of w r that a
// regression on s explains cancels the effect of the coefficients on d. Only communities near the
// same labels share the rest of w r.
//
// The first columns of a root of Cov, the same for every community, stand for it. The first column
// of a class has the variance of its intercept given all other coefficients. The intercept moves
// with the mean residual of all labels: nearly all that communities share. The other columns are
// those of a pivoted Cholesky factor, the largest remaining variance first.
func influence(k int, coefficients, g []float64) []float64 {
	size := len(g) / k
	columns := min(size, influenceNumbersMax/k)
	if columns == 0 {
		return nil // more classes than numbers
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
