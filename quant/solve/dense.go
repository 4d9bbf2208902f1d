package solve

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Products writes to dst the inner products of x with the len(dst) rows of length len(x) in rows.
func Products(dst, rows, x []float64) {
	blas64.Gemv(blas.NoTrans, 1, General(rows, len(dst), len(x)), vector(x), 0, vector(dst))
}

// AddForms adds weight times y M y', for the len(dst) rows y in rows and a symmetric M, to dst.
func AddForms(dst []float64, weight float64, rows, m []float64) {
	n := len(rows) / len(dst)
	left := make([]float64, n)
	for a := range dst {
		y := rows[a*n : (a+1)*n]
		Products(left, m, y)
		dst[a] += weight * floats.Dot(left, y)
	}
}

// Product returns the matrix product a b; columns is the number of columns of a.
func Product(a, b []float64, columns int) []float64 {
	n, m := len(a)/columns, len(b)/columns
	dst := make([]float64, n*m)
	blas64.Gemm(
		blas.NoTrans, blas.NoTrans, 1, General(a, n, columns), General(b, columns, m), 0,
		General(dst, n, m),
	)
	return dst
}

// addOuter adds weight y y' to the lower triangle of dst.
func addOuter(dst []float64, weight float64, y []float64) {
	k := len(y)
	for a, x := range y {
		Axpy(dst[a*k:a*k+a+1], weight*x, y[:a+1])
	}
}

// AddOuters adds the sum of weights[l] y_l y_l', y_l the l-th row of length k in rows, to the lower
// triangle of dst, four rows a pass.
func AddOuters(dst, weights, rows []float64, k int) {
	l := 0
	for ; l+4 <= len(weights); l += 4 {
		x0 := rows[l*k : (l+1)*k]
		x1 := rows[(l+1)*k : (l+2)*k]
		x2 := rows[(l+2)*k : (l+3)*k]
		x3 := rows[(l+3)*k : (l+4)*k]
		for a := range k {
			c0 := weights[l] * x0[a]
			c1 := weights[l+1] * x1[a]
			c2 := weights[l+2] * x2[a]
			c3 := weights[l+3] * x3[a]
			row := dst[a*k : a*k+a+1]
			y0, y1, y2, y3 := x0[:len(row)], x1[:len(row)], x2[:len(row)], x3[:len(row)]
			for b := range row {
				row[b] += (c0*y0[b] + c1*y1[b]) + (c2*y2[b] + c3*y3[b])
			}
		}
	}
	for ; l < len(weights); l++ {
		addOuter(dst, weights[l], rows[l*k:(l+1)*k])
	}
}

// Axpy adds alpha x to y.
func Axpy(y []float64, alpha float64, x []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += alpha * v
	}
}

// Combine writes the sum of coefficients[b] times the b-th of len(coefficients) rows of length
// len(y) to y.
func Combine(y, coefficients, rows []float64) {
	blas64.Gemv(
		blas.Trans, 1, General(rows, len(coefficients), len(y)), vector(coefficients), 0, vector(y),
	)
}

// General returns a matrix as gonum reads it, and vector a vector.
func General(data []float64, rows, columns int) blas64.General {
	return blas64.General{Rows: rows, Cols: columns, Stride: columns, Data: data}
}
func vector(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Inc: 1, Data: x} }

// ScaleTo writes alpha x to y.
func ScaleTo(y []float64, alpha float64, x []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = alpha * v
	}
}

// Sum returns the sum of x, from first to last.
func Sum(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s
}

// Cholesky overwrites the lower triangle of the n x n matrix a with its factor L, a = L L'. A
// matrix that is not positive definite, by rounding or because an entry is no number, gets the
// factor of the identity, and is no ok.
func Cholesky(a []float64, n int) (ok bool) {
	if _, ok = lapack64.Potrf(Symmetric(a, n)); !ok {
		for i := range n {
			clear(a[i*n : i*n+i])
			a[i*n+i] = 1
		}
	}
	return ok
}

// Symmetric returns the symmetric n x n matrix of a lower triangle as gonum reads it.
func Symmetric(a []float64, n int) blas64.Symmetric {
	return blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: n, Data: a}
}

// Eigenvalues returns those of the symmetric n x n matrix a, ascending, and leaves its eigenvectors
// in the columns of a.
func Eigenvalues(a []float64, n int) []float64 {
	values, work := make([]float64, n), make([]float64, 3*n)
	lapack64.Syev(lapack.EVCompute, Symmetric(a, n), values, work, len(work))
	return values
}

// lower returns the lower triangle of an n x n matrix as gonum reads it.
func lower(l []float64, n int) blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: l}
}

// choleskySolve overwrites x with the solution of L L' x = x.
func choleskySolve(l []float64, n int, x []float64) {
	blas64.Trsv(blas.NoTrans, lower(l, n), vector(x[:n]))
	blas64.Trsv(blas.Trans, lower(l, n), vector(x[:n]))
}

// CholeskyInverse writes the inverse of L L' to dst, n x n.
func CholeskyInverse(dst, l []float64, n int) {
	copy(dst, l[:n*n])
	lapack64.Potri(lower(dst, n))
	Mirror(dst, dst, n)
}

// Mirror copies the lower triangle of src to both triangles of dst.
func Mirror(dst, src []float64, k int) {
	for a := range k {
		for b := range a + 1 {
			dst[a*k+b], dst[b*k+a] = src[a*k+b], src[a*k+b]
		}
	}
}

// Square returns x².
func Square(x float64) float64 { return x * x }

// Delta is one where a and b are the same class.
func Delta(a, b int) float64 {
	if a == b {
		return 1
	}
	return 0
}
