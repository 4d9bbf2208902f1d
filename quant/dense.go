package quant

import "math"

// dot returns the inner product of a and b, which have one length. Four partial
// sums keep the adders busy; their fixed order keeps the result reproducible.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// products writes to dst the inner products of x with the len(dst) rows of length
// len(x) in rows, four rows a pass.
func products(dst, rows, x []float64) {
	n := len(x)
	b := 0
	for ; b+4 <= len(dst); b += 4 {
		x0, x1 := rows[b*n:(b+1)*n], rows[(b+1)*n:(b+2)*n]
		x2, x3 := rows[(b+2)*n:(b+3)*n], rows[(b+3)*n:(b+4)*n]
		x0, x1, x2, x3 = x0[:n], x1[:n], x2[:n], x3[:n]
		var s0, s1, s2, s3 float64
		for i, v := range x {
			s0 += v * x0[i]
			s1 += v * x1[i]
			s2 += v * x2[i]
			s3 += v * x3[i]
		}
		dst[b], dst[b+1], dst[b+2], dst[b+3] = s0, s1, s2, s3
	}
	for ; b < len(dst); b++ {
		dst[b] = dot(x, rows[b*n:(b+1)*n])
	}
}

// moments writes to first the inner products of x with the rows of length len(x) in rows, and to
// second those with their squares, three or two rows a pass: more do not fit the registers.
func moments(first, second, rows, x []float64) {
	n := len(x)
	for b := 0; b < len(first); {
		switch rest := len(first) - b; rest {
		case 1:
			first[b], _, second[b], _ = momentsOfTwo(rows[b*n:], rows[b*n:], x)
			b++
		case 2, 4:
			first[b], first[b+1], second[b], second[b+1] = momentsOfTwo(rows[b*n:], rows[(b+1)*n:], x)
			b += 2
		default:
			momentsOfThree(first[b:b+3], second[b:b+3], rows[b*n:(b+3)*n], x)
			b += 3
		}
	}
}

func momentsOfTwo(x0, x1, x []float64) (s0, s1, t0, t1 float64) {
	x0, x1 = x0[:len(x)], x1[:len(x)]
	for i, v := range x {
		a0, a1 := x0[i], x1[i]
		p0, p1 := v*a0, v*a1
		s0 += p0
		s1 += p1
		t0 += p0 * a0
		t1 += p1 * a1
	}
	return s0, s1, t0, t1
}

func momentsOfThree(first, second, rows, x []float64) {
	n := len(x)
	x0, x1, x2 := rows[:n], rows[n:2*n], rows[2*n:3*n]
	x0, x1, x2 = x0[:n], x1[:n], x2[:n]
	var s0, s1, s2, t0, t1, t2 float64
	for i, v := range x {
		a0, a1, a2 := x0[i], x1[i], x2[i]
		p0, p1, p2 := v*a0, v*a1, v*a2
		s0 += p0
		s1 += p1
		s2 += p2
		t0 += p0 * a0
		t1 += p1 * a1
		t2 += p2 * a2
	}
	first[0], first[1], first[2] = s0, s1, s2
	second[0], second[1], second[2] = t0, t1, t2
}

// addOuters adds the sum of weights[l] y_l y_l', y_l the l-th row of length k in rows, to the lower triangle of dst,
// four rows a pass.
func addOuters(dst, weights, rows []float64, k int) {
	l := 0
	for ; l+4 <= len(weights); l += 4 {
		x0, x1, x2, x3 := rows[l*k:(l+1)*k], rows[(l+1)*k:(l+2)*k], rows[(l+2)*k:(l+3)*k], rows[(l+3)*k:(l+4)*k]
		for a := range k {
			c0, c1, c2, c3 := weights[l]*x0[a], weights[l+1]*x1[a], weights[l+2]*x2[a], weights[l+3]*x3[a]
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

// addProducts adds the sum of weights[l] x_l y_l' to dst, x_l the l-th row of length k in left and y_l that in right,
// four rows a pass.
func addProducts(dst, weights, left, right []float64, k int) {
	n := len(dst) / k
	l := 0
	for ; l+4 <= len(weights); l += 4 {
		x0, x1, x2, x3 := left[l*k:(l+1)*k], left[(l+1)*k:(l+2)*k], left[(l+2)*k:(l+3)*k], left[(l+3)*k:(l+4)*k]
		for a := range k {
			c0, c1, c2, c3 := weights[l]*x0[a], weights[l+1]*x1[a], weights[l+2]*x2[a], weights[l+3]*x3[a]
			row := dst[a*n : (a+1)*n]
			y0, y1, y2, y3 := right[l*n:][:len(row)], right[(l+1)*n:][:len(row)], right[(l+2)*n:][:len(row)], right[(l+3)*n:][:len(row)]
			for b := range row {
				row[b] += (c0*y0[b] + c1*y1[b]) + (c2*y2[b] + c3*y3[b])
			}
		}
	}
	for ; l < len(weights); l++ {
		for a := range k {
			axpy(dst[a*n:(a+1)*n], weights[l]*left[l*k+a], right[l*n:(l+1)*n])
		}
	}
}

// axpy adds alpha x to y.
func axpy(y []float64, alpha float64, x []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += alpha * v
	}
}

// combine writes the sum of coefficients[b] times the b-th of len(coefficients)
// rows of length len(y) to y, four rows a pass.
func combine(y, coefficients, rows []float64) {
	n := len(y)
	b := 0
	if len(coefficients) < 4 {
		clear(y)
	} else {
		c0, c1, c2, c3 := coefficients[0], coefficients[1], coefficients[2], coefficients[3]
		x0, x1, x2, x3 := rows[:n], rows[n:2*n], rows[2*n:3*n], rows[3*n:4*n]
		x0, x1, x2, x3 = x0[:n], x1[:n], x2[:n], x3[:n]
		for i := range y {
			y[i] = (c0*x0[i] + c1*x1[i]) + (c2*x2[i] + c3*x3[i])
		}
		b = 4
	}
	for ; b+4 <= len(coefficients); b += 4 {
		c0, c1, c2, c3 := coefficients[b], coefficients[b+1], coefficients[b+2], coefficients[b+3]
		x0, x1 := rows[b*n:(b+1)*n], rows[(b+1)*n:(b+2)*n]
		x2, x3 := rows[(b+2)*n:(b+3)*n], rows[(b+3)*n:(b+4)*n]
		x0, x1, x2, x3 = x0[:n], x1[:n], x2[:n], x3[:n]
		for i := range y {
			y[i] += (c0*x0[i] + c1*x1[i]) + (c2*x2[i] + c3*x3[i])
		}
	}
	for ; b+2 <= len(coefficients); b += 2 {
		c0, c1 := coefficients[b], coefficients[b+1]
		x0, x1 := rows[b*n:(b+1)*n], rows[(b+1)*n:(b+2)*n]
		x0, x1 = x0[:n], x1[:n]
		for i := range y {
			y[i] += c0*x0[i] + c1*x1[i]
		}
	}
	if b < len(coefficients) {
		axpy(y, coefficients[b], rows[b*n:(b+1)*n])
	}
}

// scaleTo writes alpha x to y.
func scaleTo(y []float64, alpha float64, x []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = alpha * v
	}
}

// sum returns the sum of x, from first to last.
func sum(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s
}

// resize returns a slice of length n that reuses the memory of x. Its contents are unspecified.
func resize(x []float64, n int) []float64 {
	if cap(x) < n {
		return make([]float64, n, n+n/4)
	}
	return x[:n]
}

// zeroed is resize with every entry zero.
func zeroed(x []float64, n int) []float64 {
	x = resize(x, n)
	clear(x)
	return x
}

// cholesky overwrites the lower triangle of the n x n matrix a with its factor
// L, a = L L'. A pivot that is not positive is replaced by the smallest one that
// rounding can vouch for, so the factor is usable for a semidefinite matrix too.
func cholesky(a []float64, n int) {
	for j := range n {
		row := a[j*n : j*n+j+1]
		floor := 1e-15 * math.Abs(row[j])
		d := row[j]
		for _, v := range row[:j] {
			d -= v * v
		}
		if !(d > floor) {
			d = math.Max(floor, math.SmallestNonzeroFloat32)
		}
		d = math.Sqrt(d)
		row[j] = d
		for i := j + 1; i < n; i++ {
			r := a[i*n : i*n+j+1]
			s := r[j]
			for l, v := range row[:j] {
				s -= v * r[l]
			}
			r[j] = s / d
		}
	}
}

// choleskySolve overwrites x with the solution of L L' x = x.
func choleskySolve(l []float64, n int, x []float64) {
	for i := range n {
		row := l[i*n : i*n+i+1]
		s := x[i]
		for j, v := range row[:i] {
			s -= v * x[j]
		}
		x[i] = s / row[i]
	}
	for i := n - 1; i >= 0; i-- {
		row := l[i*n : i*n+i+1]
		v := x[i] / row[i]
		x[i] = v
		for j, u := range row[:i] {
			x[j] -= v * u
		}
	}
}

// choleskyInverse writes the inverse of L L' to dst, n x n; l and dst are two
// slices. Column a of the inverse of L fills row a of dst first, from the diagonal
// on: the rows of the inverse are their inner products.
func choleskyInverse(dst, l []float64, n int) {
	for a := range n {
		row := dst[a*n : (a+1)*n]
		row[a] = 1 / l[a*n+a]
		for i := a + 1; i < n; i++ {
			row[i] = -dot(l[i*n+a:i*n+i], row[a:i]) / l[i*n+i]
		}
	}
	for a := range n { // row b >= a of the inverse needs the columns b and on alone
		for b := a; b < n; b++ {
			dst[a*n+b] = dot(dst[a*n+b:(a+1)*n], dst[b*n+b:(b+1)*n])
		}
	}
	for a := range n {
		for b := range a {
			dst[a*n+b] = dst[b*n+a]
		}
	}
}
