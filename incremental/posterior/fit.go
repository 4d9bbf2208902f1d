package posterior

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

const (
	// farWeight is the weight of a second copy of each label without labels near it, which
	// keeps the fit from extrapolating to places without labels.
	farWeight = 0.03
	// newtonRoundsMax bounds the Newton steps; three or four are usual. When it is hit the
	// coefficients are those of the last step, which are no worse than any before.
	newtonRoundsMax = 50
	// newtonTolerance is the largest entry of a Newton step that ends the iteration. Near the
	// maximum a step is about the square of the one before, so that coefficients are within 1e-5 of
	// it, a thousandth of their errors or less.
	newtonTolerance = 1e-3
	// halvingsMax bounds how often a step that does not raise the objective is halved.
	halvingsMax = 30
)

// Coefficients are the fitted parameters of the posterior.
type Coefficients struct {
	Theta []float64 // V: the views of predictions and labels, then 2 x F x K of attributes
	B     []float64 // K
}

// sample is the labels that coefficients are fitted on.
type sample struct {
	classes int
	count   int       // V: of the views
	prior   []float64 // K: log pi0
	class   []int     // of each label
	weight  []float64
	views   []float64 // V x K each
}

// problem is one penalised likelihood under maximisation: its value, gradient and
// negative Hessian at the present coefficients.
type problem struct {
	*sample
	at       []float64 // Views + K: theta, then b
	value    float64
	gradient []float64
	hessian  []float64 // upper triangle of (Views+K) x (Views+K)

	scores, pi, means, far []float64 // scratch: K, K, Views, Views x K
}

// fit maximises
//
//	sum log pi_y(v) + farWeight sum log pi'_y(v) - (|theta|² + |b|² + attributePenalty |a|²)/2,
//
// where a are the coefficients of attributes, theta the others, and pi' is the posterior of the
// same vertex far from every label. It returns the coefficients with their covariance, the inverse
// of the negative Hessian (Laplace). The maximum is unique, and the coefficients of the last epoch,
// if there was one, are a start near it.
func fit(s *sample, last *Epoch) (Coefficients, []float64) {
	k, n := s.classes, s.count+s.classes
	p := &problem{
		sample: s, at: make([]float64, n), gradient: make([]float64, n),
		hessian: make([]float64, n*n),
		scores:  make([]float64, k), pi: make([]float64, k), means: make([]float64, s.count),
		far: make([]float64, s.count*k),
	}
	if last != nil && len(last.Theta) == s.count {
		copy(p.at[copy(p.at, last.Theta):], last.B)
	}
	p.evaluate()
	var factor mat.Cholesky
	step := mat.NewVecDense(n, nil)
	for range newtonRoundsMax {
		factor.Factorize(mat.NewSymDense(n, p.hessian)) // the penalty keeps it positive definite
		if err := factor.SolveVecTo(step, mat.NewVecDense(n, p.gradient)); err != nil {
			panic(err) // its condition is bounded by the number of labels
		}
		if !p.advance(step.RawVector().Data) {
			break
		}
	}
	factor.Factorize(mat.NewSymDense(n, p.hessian))
	inverse := mat.NewSymDense(n, nil)
	if err := factor.InverseTo(inverse); err != nil {
		panic(err)
	}
	coefficients := Coefficients{Theta: p.at[:s.count], B: p.at[s.count:]}
	return coefficients, mat.DenseCopyOf(inverse).RawMatrix().Data
}

// advance moves along step as far as that raises the objective, and reports whether
// another step is worth taking.
func (p *problem) advance(step []float64) bool {
	from, before, largest := append([]float64(nil), p.at...), p.value, 0.0
	for _, x := range step {
		largest = max(largest, math.Abs(x))
	}
	for t, i := 1.0, 0; i < halvingsMax; t, i = t/2, i+1 {
		for a := range p.at {
			p.at[a] = from[a] + float64(t*step[a])
		}
		p.evaluate()
		if p.value >= before-1e-12*math.Abs(before) {
			return largest > newtonTolerance
		}
	}
	copy(p.at, from)
	p.evaluate()
	return false
}

// evaluate computes the objective, its gradient and its negative Hessian.
func (p *problem) evaluate() {
	n, size := len(p.at), p.count*p.classes
	clear(p.gradient)
	clear(p.hessian)
	p.value = 0
	for a, x := range p.at {
		penalty := 1.0
		if a >= Views && a < p.count { // of an attribute
			penalty = attributePenalty
		}
		p.value -= penalty * x * x / 2
		p.gradient[a] = -penalty * x
		p.hessian[a*n+a] = penalty
	}
	for l, class := range p.class {
		views := p.views[l*size : (l+1)*size]
		p.label(views, class, p.weight[l])
		copy(p.far, views)
		withoutLabels(p.far, p.classes)
		p.label(p.far, class, farWeight*p.weight[l])
	}
}

// label adds one label to value, gradient and the upper triangle of the Hessian.
func (p *problem) label(views []float64, class int, weight float64) {
	k, n := p.classes, len(p.at)
	for i := range k {
		p.scores[i] = p.prior[i] + p.at[p.count+i]
	}
	addViews(p.scores, p.at[:p.count], views)
	most, sum := softmax(p.pi, p.scores)
	p.value += weight * (p.scores[class] - most - math.Log(sum))
	for j := range p.count {
		x := views[j*k : (j+1)*k]
		m := inner(p.pi, x)
		p.means[j] = m
		p.gradient[j] += weight * (x[class] - m)
		for l := range j + 1 {
			y, square := views[l*k:(l+1)*k], 0.0
			for i, q := range p.pi {
				square += q * x[i] * y[i]
			}
			p.hessian[l*n+j] += weight * (square - m*p.means[l])
		}
	}
	for i, q := range p.pi {
		p.gradient[p.count+i] -= weight * q
		for j := range p.count {
			p.hessian[j*n+p.count+i] += weight * q * (views[j*k+i] - p.means[j])
		}
		for l := range i + 1 {
			p.hessian[(p.count+l)*n+p.count+i] -= weight * q * p.pi[l]
		}
		p.hessian[(p.count+i)*(n+1)] += weight * q
	}
	p.gradient[p.count+class] += weight
}

// addViews adds the sum of theta_j x_j to scores.
func addViews(scores, theta, views []float64) {
	k := len(scores)
	for j, t := range theta {
		for i, x := range views[j*k : (j+1)*k] {
			scores[i] += float64(t * x)
		}
	}
}

// softmax writes the distribution proportional to exp(scores) to dst, and returns the largest score
// and the sum of exp(scores) over the exponential of it.
func softmax(dst, scores []float64) (most, sum float64) {
	most = scores[0]
	for _, x := range scores {
		if x > most {
			most = x
		}
	}
	dst = dst[:len(scores)]
	for i, x := range scores {
		e := exponential(x - most)
		dst[i] = e
		sum += e
	}
	scale := 1 / sum
	for i := range dst {
		dst[i] *= scale
	}
	return most, sum
}

func inner(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += float64(v * y[i])
	}
	return sum
}
