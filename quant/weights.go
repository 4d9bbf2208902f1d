package quant

import "math"

// weighting is the weight w = r a + s of a calibration label whose vertex has kernel mass a.
type weighting struct{ lambda, r, s float64 }

// constantWeights counts every label once.
var constantWeights = weighting{s: 1}

// reach describes the spread of the kernel mass over the calibration labels.
type reach struct {
	n    float64 // labels with a prediction
	mean float64 // a-bar: mean kernel mass
	cv2  float64 // squared coefficient of variation
}

// reach sums the kernel masses over the calibration labels with a prediction. A mean
// that is no more than the kernel's own error counts as none.
func (s *Statistics) reach() reach {
	out := reach{n: sum(s.ClassN)}
	a1, a2 := sum(s.ClassA1), sum(s.ClassA2)
	if out.n > 0 && a1 > s.MassMin*out.n {
		out.mean = a1 / out.n
		out.cv2 = max(a2/out.n/(out.mean*out.mean)-1, 0)
		if g2, g2a := sum(s.ClassG2), sum(s.ClassG2A); g2a > 0 { // as n_eff has the squares
			out.cv2 = max(a2*g2/(g2a*g2a)-1, 0)
		}
	}
	return out
}

// classSquares returns the sums of the squared weights of the labels themselves.
func (s *Statistics) classSquares() []float64 {
	if s.ClassG2 != nil {
		return s.ClassG2
	}
	return s.ClassN
}

// autoWeights returns the weights of auto, whose lambda fades out with the mass of the labels,
// from twice MassMin on.
func (s *Statistics) autoWeights() weighting {
	at := s.reach()
	lambda := LambdaDefault
	if at.mean < 2*s.MassMin {
		lambda *= max(0, at.mean/s.MassMin-1)
	}
	return at.weigh(Density, lambda, s.KernelSum)
}

// of returns the weight of one label, that of its age included.
func (w weighting) of(row *Row) float64 {
	x := w.r*row.A + w.s
	if row.G != 0 {
		x *= row.G
	}
	return x
}

// lambdaMax is the largest lambda whose mean-one weights keep an effective sample
// of at least the share floor of the labels: n_eff/n = 1/(1 + lambda^2 cv^2).
func (r reach) lambdaMax(floor float64) float64 {
	if r.mean == 0 {
		return 0
	}
	if r.cv2 == 0 {
		return 1
	}
	return min(1, math.Sqrt((1/floor-1)/r.cv2))
}

// weigh returns the weights of a preset. kernelSum is M, the multiplicity of the
// kernel's sources. Without mass on any label the weights are constant.
func (r reach) weigh(p Preset, lambda, kernelSum float64) weighting {
	if r.mean == 0 || p == Paper && kernelSum <= 0 {
		return constantWeights
	}
	return weighting{lambda: lambda, r: lambda * r.unit(p, kernelSum), s: 1 - lambda}
}

// unit returns the factor of lambda a by a preset.
func (r reach) unit(p Preset, kernelSum float64) float64 {
	switch p {
	case Reference:
		return 1
	case Paper:
		return 1 / kernelSum
	default:
		return 1 / r.mean
	}
}

// rescale turns a lambda of the density preset into the one that gives another
// preset the same weights up to a factor.
func (r reach) rescale(p Preset, lambda, kernelSum float64) float64 {
	if r.mean == 0 || p == Paper && kernelSum <= 0 {
		return 0
	}
	u := r.unit(p, kernelSum) * r.mean
	return lambda / (lambda + (1-lambda)*u)
}
