package auto

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

const (
	// responsibilityTolerance bounds the duality gap of q(gamma): how far the mean responsibility
	// of a class may exceed its share, as a part of it.
	responsibilityTolerance = 1e-4
	// shareFloor bounds the shares that a Jacobian divides by, and jacobianFloor its eigenvalues:
	// they only matter where the labels cannot tell two classes apart.
	shareFloor, jacobianFloor = 1e-3, 1e-2
	// shareLeast is the share of a class without members, so that the class may come back.
	shareLeast = 1e-6
)

// reading holds the figures that auto takes from the histogram of a community. Vectors have K
// entries.
type reading struct {
	n, squares float64 // members, and the sum of their squared multiplicities
	mean       []float64
	likely     []float64 // q(1): the shares if the members were selected by class
	tempered   []float64 // q(gamma)
	gamma      float64
	allowed    float64 // the most that the edges inside let gamma be
	evidence   float64 // for a selection by class: a logarithm of odds, averaged over records
	seen       float64 // records that it is averaged over
	byClass    float64 // the most that the evidence lets gamma be

	inverse       []float64 // K x K: J⁺ at q(gamma), which turns a change of mean R into one of q
	inverseLikely []float64 // K x K: the same at q(1)
	second        []float64 // K x K: mean of R R' at q(gamma)
	noise         []float64 // K x K: covariance of the mean class of the members, given R
}

// histogram is the workspace that reads one community. Its rows are the cells with members.
type histogram struct {
	solve.Mixture       // X are the mean posteriors of the cells, M how many members they have
	cells         []int // the cell of each row
	r             []float64
}

// load takes the cells of a community that have members.
func (u *histogram) load(p *stats.Posterior) {
	k := len(p.Prior)
	u.Clear(k)
	u.cells = u.cells[:0]
	for z, count := range p.Counts {
		if count > 0 {
			u.Add(count, p.Means[z*k:(z+1)*k])
			u.cells = append(u.cells, z)
		}
	}
}

// read returns the reading of a community from its histogram. With M_z the mean posterior of cell z
// and h_z the part of the members in it,
//
//	q(gamma): fixed point of  q = sum_z h_z R_z,   R_z proportional to M_z (q/pi0)^gamma.
//
// last, if it is not nil, is an estimate of the same community to start from.
func (u *histogram) read(p *stats.Posterior, last *stats.Memory) *reading {
	u.load(p)
	k := len(p.Prior)
	r := &reading{
		n: u.All, squares: p.Squares, mean: make([]float64, k),
		second: make([]float64, k*k), noise: make([]float64, k*k),
	}
	solve.Combine(r.mean, u.M, u.X)
	solve.ScaleTo(r.mean, 1/u.All, r.mean)
	start := r.mean
	if last != nil && last.Posterior == uint64(p.Version) && len(last.Likely) == k {
		start = last.Likely
	}
	r.likely = u.solve(slices.Clone(start), r.mean, p.Prior, 1)
	u.Temper(r.likely, p.Prior, 1)
	r.evidence, r.seen = settled(evidenceOf(p, u, r.squares), last)
	r.byClass = byClassOf(r.evidence)
	r.allowed = allowedBy(p, r.likely)
	r.gamma = gammaOf(p, r.allowed, r.byClass)
	if r.gamma > 0 {
		u.secondMoments(r.second)
		r.inverseLikely = inverseJacobian(r.likely, r.second, 1)
	}
	r.tempered = slices.Clone(r.mean)
	solve.Axpy(r.tempered, r.gamma, r.likely) // exact for gamma 0 and 1, and near q(gamma) between
	solve.Axpy(r.tempered, -r.gamma, r.mean)
	if r.gamma > 0 && r.gamma < 1 {
		u.solve(r.tempered, r.mean, p.Prior, r.gamma)
	}
	u.Temper(r.tempered, p.Prior, r.gamma)
	u.secondMoments(r.second)
	r.inverse = inverseJacobian(r.tempered, r.second, r.gamma)
	r.setNoise()
	return r
}

// solve moves q to the fixed point for one gamma, and returns it.
func (u *histogram) solve(q, mean, prior []float64, gamma float64) []float64 {
	for class, x := range mean {
		// a class without members may come back
		q[class] = max(q[class], solve.StartFloor*x, shareLeast)
	}
	solve.ScaleTo(q, 1/solve.Sum(q), q)
	u.Maximise(q, prior, gamma, shareLeast, responsibilityTolerance, &u.Mixture)
	for i, x := range u.Gradient {
		q[i] *= 1 + x // the mean of R, which no floor holds up
	}
	return q
}

// secondMoments writes the mean of R R' under the factors of the last temper to s, K x K.
func (u *histogram) secondMoments(s []float64) {
	u.Outers(s, u.M, u.Factor)
	solve.ScaleTo(s, 1/u.All, s)
}

// setNoise sets the covariance of the mean of the classes that R draws,
// (diag mean R - S) sum m²/(sum m)²: a member that counts more often is like the others.
func (r *reading) setNoise() {
	k, scale := len(r.mean), r.squares/(r.n*r.n)
	solve.ScaleTo(r.noise, -scale, r.second)
	for i := range k {
		r.noise[i*k+i] += scale * solve.Sum(r.second[i*k:(i+1)*k]) // R sums to one
	}
}

// byCoefficients returns K x (Shared + K) the derivative of q(gamma) by the coefficients of the
// posterior, from the mean views X of each cell:
//
//	dR_i/dtheta_j = R_i (X_ji - sum_k R_k X_jk),   dR_i/db_l = R_i ([i = l] - R_l).
func (u *histogram) byCoefficients(p *stats.Posterior, r *reading) []float64 {
	k, shared := u.K, p.Shared
	size := shared + k
	moved := make([]float64, k*size)
	u.r = append(u.r[:0], u.X...)
	for l, z := range u.cells {
		row := u.r[l*k : (l+1)*k]
		floats.Mul(row, u.Factor)
		solve.ScaleTo(row, u.Inverse[l], row)
		weight := u.M[l] / u.All
		for j := range shared {
			x := p.Views[(z*shared+j)*k : (z*shared+j+1)*k]
			mean := floats.Dot(row, x)
			for i, y := range row {
				moved[i*size+j] += weight * y * (x[i] - mean)
			}
		}
	}
	for i := range k { // by the intercepts it is diag(mean R) - S
		row := r.second[i*k : (i+1)*k]
		solve.Axpy(moved[i*size+shared:(i+1)*size], -1, row)
		moved[i*size+shared+i] += solve.Sum(row)
	}
	return solve.Product(r.inverse, moved, k)
}

// inverseJacobian returns the inverse of
//
//	J = I - gamma (diag q - S) D⁻¹,   D = diag max(q, shareFloor),
//
// K x K: q follows an error of the mean of R multiplied by this matrix. D^-1/2 J D^1/2 is
// symmetric, with eigenvalues between 1 - gamma and 1. Those below jacobianFloor count as
// jacobianFloor: the shares of two classes that look alike are uncertain then, not unlimited.
func inverseJacobian(q, s []float64, gamma float64) []float64 {
	k := len(q)
	dst, root := make([]float64, k*k), make([]float64, k)
	for a, x := range q {
		root[a] = math.Sqrt(max(x, shareFloor))
	}
	fill := func(dst []float64, shift float64) {
		for a := range k {
			for b := range k {
				dst[a*k+b] = solve.Delta(a, b)*(1-shift) -
					gamma*(solve.Delta(a, b)*q[a]-s[a*k+b])/(root[a]*root[b])
			}
		}
	}
	m := make([]float64, k*k)
	fill(m, jacobianFloor)
	above := solve.Cholesky(m, k) // all eigenvalues are above the floor
	if fill(m, 0); above {
		solve.Cholesky(m, k)
		solve.CholeskyInverse(dst, m, k)
	} else {
		values := solve.Eigenvalues(m, k)
		for l, x := range values {
			values[l] = 1 / max(x, jacobianFloor)
		}
		scaled := slices.Clone(m)
		for a := range k {
			floats.Mul(scaled[a*k:(a+1)*k], values)
		}
		left, right := solve.General(scaled, k, k), solve.General(m, k, k)
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, left, right, 0, solve.General(dst, k, k))
	}
	for a := range k {
		for b := range k {
			dst[a*k+b] *= root[a] / root[b]
		}
	}
	return dst
}
