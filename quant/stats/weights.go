package stats

import (
	"math"

	"gqlstream/quant/solve"
)

// Weighting is the weight w = r a + s of a calibration label on a vertex of kernel mass a.
type Weighting struct{ Lambda, R, S float64 }

// ConstantWeights counts every label once.
var ConstantWeights = Weighting{S: 1}

// Reach describes the spread of the kernel mass over the calibration labels.
type Reach struct {
	N    float64 // labels with a prediction
	Mean float64 // a-bar: mean kernel mass
	CV2  float64 // squared coefficient of variation
}

// Reach sums the kernel masses over the calibration labels with a prediction. A mean
// that is no more than the kernel's own error counts as none.
func (s *Statistics) Reach() Reach {
	out := Reach{N: solve.Sum(s.ClassN)}
	a1, a2 := solve.Sum(s.ClassA1), solve.Sum(s.ClassA2)
	if out.N > 0 && a1 > s.MassMin*out.N {
		out.Mean = a1 / out.N
		out.CV2 = max(a2/out.N/(out.Mean*out.Mean)-1, 0)
		g2, g2a := solve.Sum(s.ClassG2), solve.Sum(s.ClassG2A)
		if g2a > 0 { // as n_eff has the squares
			out.CV2 = max(a2*g2/(g2a*g2a)-1, 0)
		}
	}
	return out
}

// ClassSquares returns the sums of the squared weights of the labels themselves.
func (s *Statistics) ClassSquares() []float64 {
	if s.ClassG2 != nil {
		return s.ClassG2
	}
	return s.ClassN
}

// AutoWeights returns the weights of auto. Its lambda falls with the mean mass of the labels: it is
// LambdaDefault from twice MassMin on, and 0 at MassMin.
func (s *Statistics) AutoWeights() Weighting {
	at := s.Reach()
	lambda := LambdaDefault
	if at.Mean < 2*s.MassMin {
		lambda *= max(0, at.Mean/s.MassMin-1)
	}
	return at.Weigh(Density, lambda, s.KernelSum)
}

// Of returns the weight of one label, that of its age included.
func (w Weighting) Of(row *Row) float64 {
	x := w.R*row.A + w.S
	if row.G != 0 {
		x *= row.G
	}
	return x
}

// LambdaMax is the largest lambda with mean-one weights that keep an effective sample
// of at least the share floor of the labels: n_eff/n = 1/(1 + lambda^2 cv^2).
func (r Reach) LambdaMax(floor float64) float64 {
	if r.Mean == 0 {
		return 0
	}
	if r.CV2 == 0 {
		return 1
	}
	return min(1, math.Sqrt((1/floor-1)/r.CV2))
}

// Weigh returns the weights of a preset. kernelSum is M, the multiplicity of the
// kernel's sources. Without mass on any label the weights are constant.
func (r Reach) Weigh(p Preset, lambda, kernelSum float64) Weighting {
	if r.Mean == 0 || p == Paper && kernelSum <= 0 {
		return ConstantWeights
	}
	return Weighting{Lambda: lambda, R: lambda * r.unit(p, kernelSum), S: 1 - lambda}
}

// unit returns the factor of lambda a by a preset.
func (r Reach) unit(p Preset, kernelSum float64) float64 {
	switch p {
	case Reference:
		return 1
	case Paper:
		return 1 / kernelSum
	default:
		return 1 / r.Mean
	}
}

// rescale turns a lambda of the density preset into the one that gives another
// preset the same weights up to a factor.
func (r Reach) rescale(p Preset, lambda, kernelSum float64) float64 {
	if r.Mean == 0 || p == Paper && kernelSum <= 0 {
		return 0
	}
	u := r.unit(p, kernelSum) * r.Mean
	return lambda / (lambda + (1-lambda)*u)
}

// Preset names a rule that turns kernel mass a into the weight of a label.
type Preset string

// The presets. Each goes with a kernel that the caller chooses: ppr, truncated, lazy.
const (
	Density   Preset = "density"   // w = lambda a / mean of a + 1 - lambda
	Reference Preset = "reference" // w = lambda a + 1 - lambda: the authors' code
	Paper     Preset = "paper"     // w = lambda a / M + 1 - lambda: as printed
)

const (
	// LambdaDefault is the lambda of the methods that do not choose their own.
	LambdaDefault = 0.9
	// LambdaAuto asks for the largest lambda that keeps an effective sample of 0.3 of the labels.
	// It is a number, unlike NaN, so that options stay comparable and fit into JSON.
	LambdaAuto = -1
)

// Scaling says how methods that do not choose for themselves weigh labels by the kernel.
type Scaling struct {
	Preset Preset
	Lambda float64 // the share of the kernel, 0 to 1, or LambdaAuto
}

// autoFloor is the smallest share of the labels that may remain effective with LambdaAuto, where no
// average tempers the choice; see Reach.LambdaMax.
const autoFloor = 0.3

// Weights returns the weights of the labels of a community by a scaling.
func (by Scaling) Weights(s *Statistics) Weighting {
	at, lambda := s.Reach(), by.Lambda
	if lambda == LambdaAuto {
		lambda = at.rescale(by.Preset, at.LambdaMax(autoFloor), s.KernelSum)
	}
	return at.Weigh(by.Preset, lambda, s.KernelSum)
}
