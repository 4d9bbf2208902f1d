package stats

import (
	"math"

	"gqlstream/quant/solve"
)

// Selection names how the members of a community were selected, if a user
// knows it. Otherwise the edges inside decide.
type Selection string

// The selections that can be declared.
const (
	ByEdges Selection = "" // not declared: the edges inside decide
	// by their classes: class shares differ, each class is typical
	ByClass     Selection = "class"
	ByPlace     Selection = "place"     // by where they are in the graph
	ByAttribute Selection = "attribute" // by something seen of them, the prediction included
)

// Selections lists the selections that a user can declare.
var Selections = []Selection{ByClass, ByPlace, ByAttribute}

// Posterior is the input of auto for one community: how many of its open members (with a prediction
// and an estimated class) fall into each of B learned cells, and figures of the graph and the
// labels about these cells. Package incremental/posterior makes the cells, with each fit of the
// coefficients.
type Posterior struct {
	Version uint32 // of the coefficients, from 1
	// K: pi0, the shares of the graph that the posteriors suppose, none of them 0
	Prior        []float64
	LabelWeights []float64 // K: by how much a label of each class weighs; nil: one
	PriorNoise   []float64 // K x K: covariance of the error of Prior; nil: it is not corrected
	Atypical     float64   // how far the labels are from typical of the graph, in standard errors
	// how far the calibration labels are scattered, as edges between them tell
	LabelGate float64
	Selected  Selection
	Gamma     *float64 // the gamma to use; nil: the selection and the edges inside decide

	Means     []float64 // B x K: mean posterior of the open vertices in each cell
	Views     []float64 // B x Shared x K: mean of the views that the shared coefficients multiply
	Counts    []float64 // B: open members in each cell, each with its multiplicity
	All       []float64 // B: the same of all members with a prediction, labelled or not
	Squares   float64   // sum of their squared multiplicities, of open members
	Predicted []float64 // K: open members by the class that their prediction is for
	// Apart returns how far the members are from the open vertices in the attribute in which they
	// are farthest, in nats, if they count as this number of members; nil: no attribute is read.
	Apart func(members float64) float64

	Inside   float64 // edges between different open members
	Distinct float64 // how many such members there are
	Degrees  float64 // the sum of their degrees

	Vertices float64   // how many open vertices the graph has
	Sizes    []float64 // B: how many of them are in each cell
	Mass     []float64 // K: sums of their posteriors
	Tops     []float64 // K: of how many of them the prediction is for each class
	// Expected returns the number of edges inside if this number of members had been drawn
	// at random within classes of these shares.
	Expected func(distinct float64, shares []float64) float64
	// Agreement is how far the classes of vertices one step apart covary given their posteriors, as
	// a part of their variances, and of vertices two steps apart for every neighbour between them
	// over its degree; nil: not at all.
	Agreement []float64

	Residuals *Residuals
	Own       *Residuals // of the members' own labels, with the mass 0; nil: there are none
	Between   []float64  // K: variance of the mean residual between communities; see Between
	// Within holds for each class the variances of the posteriors of its labels, over
	// their number less one: K x K.
	Within []float64

	// Coefficients is the covariance of the coefficients behind the posteriors: Shared of
	// them that all classes share, then K intercepts. Nil leaves their uncertainty out.
	Coefficients []float64
	Shared       int
	// Labels returns a sample of the calibration labels of each class, for the error of the
	// posteriors beyond that of the coefficients; nil where Coefficients is.
	Labels func() *LabelSample

	// Last is the last published estimate of the community under the same options, and Turnover
	// says how its members differ from those of now: solves start from its shares, and the error of
	// the coefficients that it had is taken while that hardly changes. Nil computes all from
	// nothing.
	Last     *Memory
	Turnover Turnover

	Stale float64 // part of the calibration labels that no longer describes their vertices
}

// Residuals are sums over calibration labels of r = y - pi, label less posterior, times powers of
// the kernel mass a of the label's vertex and of the weight g of the label itself. The weighted
// Mean and its variances follow from them for every Weighting, as from the tallies.
type Residuals struct {
	K         int
	Sum, Mass float64      // sums of g and g a
	First     [2][]float64 // K: sums of g r and g a r
	Squares   [3]float64   // sums of g², g² a, g² a²
	ByClass   [2][]float64 // K: sums of g and g a over the labels of each class

	FirstSquare, Second []float64 // K: sums of g² r and of g² r², where all labels have the mass 0
	// Weighted returns the sums for labels of weights g w(a) and of the mass 0; nil where all have
	// that mass.
	Weighted func(w Weighting) *Residuals
}

// NewResiduals returns the sums of no label.
func NewResiduals(k int) *Residuals {
	x := make([]float64, 6*k)
	part := func(i int) []float64 { return x[i*k : (i+1)*k : (i+1)*k] }
	return &Residuals{
		K: k, First: [2][]float64{part(0), part(1)}, ByClass: [2][]float64{part(2), part(3)},
		FirstSquare: part(4), Second: part(5),
	}
}

// Add counts one label of the mass 0, with the weight g and the posterior pi.
func (r *Residuals) Add(class int, g float64, pi []float64) {
	r.Sum, r.Squares[0] = r.Sum+g, r.Squares[0]+g*g
	r.ByClass[0][class] += g
	for i, p := range pi {
		x := solve.Delta(i, class) - p
		r.First[0][i] += g * x
		r.FirstSquare[i] += g * g * x
		r.Second[i] += g * g * x * x
	}
}

// LabelResiduals holds the residual of every calibration label, for kernels with a known mass at
// each label.
type LabelResiduals struct {
	sums  *Residuals // where all have the mass 0
	rows  []float64  // n x K: r of each label
	gains []float64  // n: g of each
	class []int      // n
}

// NewLabelResiduals returns those of no label.
func NewLabelResiduals(k int) *LabelResiduals { return &LabelResiduals{sums: NewResiduals(k)} }

// Add adds a label with the weight g and the posterior pi.
func (l *LabelResiduals) Add(class int, g float64, pi []float64) {
	l.sums.Add(class, g, pi)
	l.gains, l.class = append(l.gains, g), append(l.class, class)
	for i, p := range pi {
		l.rows = append(l.rows, solve.Delta(i, class)-p)
	}
}

// Weigh returns the sums of the labels with these masses, one for each label that was added.
func (l *LabelResiduals) Weigh(masses []float64) *Residuals {
	k := l.sums.K
	r := NewResiduals(k)
	r.Sum, r.First[0], r.ByClass[0] = l.sums.Sum, l.sums.First[0], l.sums.ByClass[0]
	weights := make([]float64, len(masses))
	for i, g := range l.gains {
		weights[i] = g * masses[i]
		r.Mass += weights[i]
		r.ByClass[1][l.class[i]] += weights[i]
		r.Squares[0] += g * g
		r.Squares[1] += g * weights[i]
		r.Squares[2] += weights[i] * weights[i]
	}
	solve.Combine(r.First[1], weights, l.rows)
	r.Weighted = func(w Weighting) *Residuals {
		if w.R == 0 {
			return l.sums
		}
		sums := NewResiduals(k)
		for i, a := range masses {
			weight := l.gains[i] * (w.R*a + w.S)
			sums.Sum += weight
			sums.Squares[0] += weight * weight
			for j, x := range l.rows[i*k : (i+1)*k] {
				sums.FirstSquare[j] += weight * weight * x
				sums.Second[j] += weight * weight * x * x
			}
		}
		return sums
	}
	return r
}

// ClassResiduals holds the residuals of the labels of each class, all of the mass 0.
type ClassResiduals struct {
	of  []*Residuals
	all *Residuals // the sum of them
}

// NewClassResiduals keeps the residuals of the labels of each class.
func NewClassResiduals(of []*Residuals) *ClassResiduals {
	c := &ClassResiduals{of: of, all: NewResiduals(len(of))}
	for _, r := range of {
		c.all.Sum += r.Sum
		c.all.Squares[0] += r.Squares[0]
		solve.Axpy(c.all.First[0], 1, r.First[0])
		solve.Axpy(c.all.ByClass[0], 1, r.ByClass[0])
		solve.Axpy(c.all.FirstSquare, 1, r.FirstSquare)
		solve.Axpy(c.all.Second, 1, r.Second)
	}
	return c
}

// Weigh returns the sums for one community where single masses are not known: from the sums of g a
// and g² a² by class and that of g a r, which it keeps, taking the labels of one class for alike
// otherwise.
func (c *ClassResiduals) Weigh(a1, a2, first []float64) *Residuals {
	k := len(c.of)
	r := &Residuals{
		K: k, Sum: c.all.Sum, First: [2][]float64{c.all.First[0], first},
		ByClass: [2][]float64{c.all.ByClass[0], make([]float64, k)},
	}
	mean, square := make([]float64, k), make([]float64, k) // of a over the labels of a class
	for i, of := range c.of {
		if of.Sum > 0 {
			mean[i], square[i] = a1[i]/of.Sum, a2[i]/of.Squares[0]
			r.ByClass[1][i] = mean[i] * of.Sum
			r.Mass += r.ByClass[1][i]
			solve.Axpy(r.Squares[:], of.Squares[0], []float64{1, mean[i], square[i]})
		}
	}
	r.Weighted = func(w Weighting) *Residuals {
		if w.R == 0 {
			return c.all
		}
		sums := NewResiduals(k)
		sums.Sum = r.sum(w)
		for i, of := range c.of {
			share := w.S*w.S + 2*w.R*w.S*mean[i] + w.R*w.R*square[i]
			sums.Squares[0] += share * of.Squares[0]
			solve.Axpy(sums.FirstSquare, share, of.FirstSquare)
			solve.Axpy(sums.Second, share, of.Second)
		}
		return sums
	}
	return r
}

// Communities of at least betweenLabels effective labels, and of at most half of all, say how the
// Mean residual varies between communities; with fewer than betweenLeast nothing is known of it.
const betweenLabels, betweenLeast = 5, 3

// Between returns the variance, K, of the mean residual between communities beyond the noise of
// their labels: a classifier errs otherwise in one place than in another. nil: it is not known. own
// are the residuals of the labels among the members of each community (the moment estimator of
// DerSimonian and Laird, 1986, with equal weights).
func (c *ClassResiduals) Between(own []*Residuals) []float64 {
	if c == nil || !(c.all.Sum > 0) {
		return nil
	}
	k := c.all.K
	mean, scatter := make([]float64, k), make([]float64, k)
	c.all.Mean(mean, ConstantWeights)
	c.all.Variance(scatter, mean, ConstantWeights)
	everywhere := c.all.Effective(ConstantWeights)
	solve.ScaleTo(scatter, everywhere*SmallSample(everywhere), scatter)
	between, n, d := make([]float64, k), 0.0, make([]float64, k)
	for _, r := range own {
		effective := r.Effective(ConstantWeights)
		if effective < betweenLabels || 2*effective > everywhere {
			continue
		}
		n++
		r.Mean(d, ConstantWeights)
		for i, x := range d {
			between[i] += solve.Square(x-mean[i]) - scatter[i]/effective
		}
	}
	if n < betweenLeast {
		return nil
	}
	for i, x := range between {
		between[i] = max(x/n, 0)
	}
	return between
}

// Mean returns the mean residual of all labels, K, and its standard errors; nil where there are
// none.
func (c *ClassResiduals) Mean() (mean, se []float64) {
	if c == nil {
		return nil, nil
	}
	k := len(c.of)
	mean, se = make([]float64, k), make([]float64, k)
	if !(c.all.Sum > 0) {
		return mean, se
	}
	c.all.Mean(mean, ConstantWeights)
	c.all.Variance(se, mean, ConstantWeights)
	for i, v := range se {
		se[i] = math.Sqrt(v)
	}
	return mean, se
}

// sum returns the sum of the weights w = r a + s over the labels.
func (r *Residuals) sum(w Weighting) float64 { return w.R*r.Mass + w.S*r.Sum }

// Effective returns the effective number of labels, (sum w)²/sum w².
func (r *Residuals) Effective(w Weighting) float64 {
	squares := w.S*w.S*r.Squares[0] + 2*w.R*w.S*r.Squares[1] + w.R*w.R*r.Squares[2]
	return r.sum(w) * r.sum(w) / squares
}

// Mean writes the weighted mean residual to d.
func (r *Residuals) Mean(d []float64, w Weighting) {
	mass := r.sum(w)
	for i := range d {
		d[i] = (w.R*r.First[1][i] + w.S*r.First[0][i]) / mass
	}
}

// Variance writes sum (w/sum w)² (r - d)² to dst.
func (r *Residuals) Variance(dst, d []float64, w Weighting) {
	c := r
	if r.Weighted != nil {
		c = r.Weighted(w)
	}
	for i, x := range d {
		v := c.Second[i] + c.Squares[0]*x*x - 2*c.FirstSquare[i]*x
		dst[i] = max(v, 0) / (c.Sum * c.Sum) // rounding can leave less where all labels are alike
	}
}

// AddSlope adds scale times the weighted mean derivative of the labels' posteriors by the
// coefficients to dst, K x (Shared + K). The labels of one class count as alike.
func (r *Residuals) AddSlope(dst []float64, scale float64, w Weighting, l *LabelSample) {
	mass := r.sum(w)
	for c, slopes := range l.slopes {
		if l.Mass[c] > 0 {
			weight := scale * (w.S*r.ByClass[0][c] + w.R*r.ByClass[1][c]) / (mass * l.Mass[c])
			solve.Axpy(dst, weight, slopes)
		}
	}
}

// excessFloor bounds n_eff - 1 in the small-sample factor n_eff/(n_eff - 1).
const excessFloor = 0.5

// SmallSample is n_eff/(n_eff - 1), bounded where a class has hardly any label.
func SmallSample(nEff float64) float64 { return nEff / max(nEff-1, excessFloor) }
