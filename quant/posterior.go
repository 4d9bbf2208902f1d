package quant

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Selection names the way in which the members of a community were selected, if a user
// knows it. Otherwise the edges inside decide.
type Selection string

// The selections that can be declared.
const (
	ByEdges     Selection = ""          // not declared: the edges inside decide
	ByClass     Selection = "class"     // by what they are: class shares differ, each class is typical
	ByPlace     Selection = "place"     // by where they are in the graph
	ByAttribute Selection = "attribute" // by something seen of them, the prediction included
)

// Selections lists what can be declared.
var Selections = []Selection{ByClass, ByPlace, ByAttribute}

// Posterior is the input of auto for one community. Package incremental/posterior computes
// posteriors; here they are distributions over the classes, one for each vertex with a prediction.
type Posterior struct {
	Version   uint32    // of the coefficients, from 1
	Prior     []float64 // K: pi0, the shares of the calibration labels, none of them 0
	LabelGate float64   // how far the calibration labels are scattered, as edges between them tell
	Selected  Selection
	Gamma     *float64 // what gamma is; nil: the selection and the edges inside decide

	Inside   float64   // edges between different unlabelled members with a posterior
	Distinct float64   // how many such members there are
	Degrees  float64   // the sum of their degrees
	Vertices float64   // how many such vertices the graph has
	Mass     []float64 // K: sums of their posteriors
	Tops     []float64 // K: of how many of them the prediction is for each class
	// Predicted returns the class that the prediction of a member is for; nil: not known.
	Predicted func(vertex uint32) int
	// Expected returns the number of edges inside if so many members had been drawn
	// at random within classes of these shares.
	Expected func(distinct float64, shares []float64) float64

	// Agreement is how far the classes of vertices one step apart covary given what is known of them, as a part of their
	// variances, and of vertices two steps apart for every neighbour between them over its degree; nil: not at all.
	Agreement []float64

	// Members visits the unlabelled members with a posterior, in a fixed order; pi is
	// valid during the call only.
	Members func(visit func(vertex uint32, multiplicity float64, pi []float64))
	// Crowd holds sums over them of many; nil has an estimate read them all.
	Crowd *Crowd

	Residuals *Residuals
	Own       *Residuals // of the members' own labels, with the mass 0; nil: there are none
	// Within holds for each class the variances of the posteriors of its labels, over
	// their number less one: K x K.
	Within []float64

	// Coefficients is the covariance of the coefficients behind the posteriors: Shared of
	// them that all classes share, then K intercepts. Nil leaves their uncertainty out.
	Coefficients []float64
	Shared       int
	// Labels returns calibration labels of each class, which say what else is open about the posteriors.
	Labels func() *LabelSample
	// Views writes the Shared x K views of a vertex to dst: what the shared coefficients
	// multiply in the logarithm of the posterior of each class.
	Views func(dst []float64, vertex uint32)

	// Last is the last estimate of the community under the same options, and Turnover says how its members
	// differ from those of now: solves start from its shares, and the error of the coefficients that it had is taken
	// while that hardly changes. Nil has all computed from nothing.
	Last     *Snapshot
	Turnover Turnover
}

// Residuals are sums over calibration labels of r = y - pi, label less posterior, times powers of the kernel mass a of
// the label's vertex and of the weight g of the label itself. The weighted mean and its variances follow from them for
// every weighting, as from the tallies.
type Residuals struct {
	K         int
	Sum, Mass float64      // sums of g and g a
	First     [2][]float64 // K: sums of g r and g a r
	Squares   [3]float64   // sums of g², g² a, g² a²

	FirstSquare, Second []float64 // K: sums of g² r and of g² r², where all labels have the mass 0
	// weighted returns the sums for labels of weights g w(a) and of the mass 0; nil where all have that mass.
	weighted func(w weighting) *Residuals
	// slopes adds scale times the sum of g w(a) times the derivative of pi by the coefficients to dst, K x (Shared + K);
	// nil where there are no coefficients.
	slopes func(dst []float64, scale float64, w weighting)

	rows  []float64 // n x K: r of each label
	gains []float64 // g of each
}

// NewResiduals returns the sums of no label.
func NewResiduals(k int) *Residuals {
	x := make([]float64, 4*k)
	return &Residuals{K: k, First: [2][]float64{x[:k:k], x[k : 2*k : 2*k]}, FirstSquare: x[2*k : 3*k : 3*k], Second: x[3*k:]}
}

// Add counts one label of the mass 0.
func (r *Residuals) Add(class int, g float64, pi []float64) {
	r.rows, r.gains = append(r.rows, pi...), append(r.gains, g)
	row := r.rows[len(r.rows)-r.K:]
	scaleTo(row, -1, row)
	row[class]++
	r.Sum, r.Squares[0] = r.Sum+g, r.Squares[0]+g*g
	axpy(r.First[0], g, row)
	r.square(g*g, row)
}

// square counts a residual in FirstSquare and Second.
func (r *Residuals) square(weight float64, row []float64) {
	for i, x := range row {
		r.FirstSquare[i] += weight * x
		r.Second[i] += weight * x * x
	}
}

// Weigh returns the sums for the same labels with these masses, which it keeps.
func (l *Residuals) Weigh(masses []float64) *Residuals {
	r := NewResiduals(l.K)
	r.Sum, r.First[0] = l.Sum, l.First[0]
	weights := make([]float64, len(masses))
	for i, g := range l.gains {
		weights[i] = g * masses[i]
		r.Mass += weights[i]
		r.Squares[0], r.Squares[1], r.Squares[2] = r.Squares[0]+g*g, r.Squares[1]+g*weights[i], r.Squares[2]+weights[i]*weights[i]
	}
	combine(r.First[1], weights, l.rows)
	r.weighted = func(w weighting) *Residuals {
		if w.r == 0 {
			return l
		}
		sums := NewResiduals(l.K)
		for i, a := range masses {
			weight := l.gains[i] * (w.r*a + w.s)
			sums.Sum, sums.Squares[0] = sums.Sum+weight, sums.Squares[0]+weight*weight
			sums.square(weight*weight, l.rows[i*l.K:(i+1)*l.K])
		}
		return sums
	}
	return r
}

// Visit has the derivatives of the posteriors be those of labels that each visits, which may stand for others: g is the
// weight of all of these. Most estimates do not ask for them.
func (r *Residuals) Visit(each func(visit func(a, g float64, pi, views []float64))) {
	r.slopes = func(dst []float64, scale float64, w weighting) {
		each(func(a, g float64, pi, views []float64) { addSlope(dst, scale*g*(w.r*a+w.s), pi, views) })
	}
}

// addSlope adds weight times the derivative of the distribution p by the coefficients
// to dst, K x (Shared + K): for p_i proportional to exp(sum_j theta_j x_ji + b_i),
//
//	dp_i/dtheta_j = p_i (x_ji - sum_k p_k x_jk),   dp_i/db_l = p_i ([i = l] - p_l).
func addSlope(dst []float64, weight float64, p, views []float64) {
	k := len(p)
	shared := len(views) / k
	size := shared + k
	for j := range shared {
		x := views[j*k : (j+1)*k]
		mean := floats.Dot(p, x)
		for i, q := range p {
			dst[i*size+j] += weight * q * (x[i] - mean)
		}
	}
	for i, q := range p {
		row := dst[i*size+shared : (i+1)*size]
		axpy(row, -weight*q, p)
		row[i] += weight * q
	}
}

// ClassResiduals holds the residuals of the labels of each class, all of the mass 0.
type ClassResiduals struct {
	of     []*Residuals
	all    *Residuals // the sum of them
	labels func() *LabelSample
}

// NewClassResiduals keeps the residuals of the labels of each class, and reads the derivatives of the posteriors from a
// sample of these.
func NewClassResiduals(of []*Residuals, labels func() *LabelSample) *ClassResiduals {
	c := &ClassResiduals{of: of, all: NewResiduals(len(of)), labels: labels}
	for _, r := range of {
		c.all.Sum, c.all.Squares[0] = c.all.Sum+r.Sum, c.all.Squares[0]+r.Squares[0]
		axpy(c.all.First[0], 1, r.First[0])
		axpy(c.all.FirstSquare, 1, r.FirstSquare)
		axpy(c.all.Second, 1, r.Second)
	}
	return c
}

// Weigh returns the sums for one community where single masses are not known: from the sums of g a and g² a² by class and that
// of g a r, which it keeps, taking the labels of one class for alike otherwise.
func (c *ClassResiduals) Weigh(a1, a2, first []float64) *Residuals {
	k := len(c.of)
	r := &Residuals{K: k, Sum: c.all.Sum, First: [2][]float64{c.all.First[0], first}}
	mean, square := make([]float64, k), make([]float64, k) // of a over the labels of a class
	for i, of := range c.of {
		if of.Sum > 0 {
			mean[i], square[i] = a1[i]/of.Sum, a2[i]/of.Squares[0]
			r.Mass += mean[i] * of.Sum
			axpy(r.Squares[:], of.Squares[0], []float64{1, mean[i], square[i]})
		}
	}
	r.weighted = func(w weighting) *Residuals {
		if w.r == 0 {
			return c.all
		}
		sums := NewResiduals(k)
		sums.Sum = r.sum(w)
		for i, of := range c.of {
			share := w.s*w.s + 2*w.r*w.s*mean[i] + w.r*w.r*square[i]
			sums.Squares[0] += share * of.Squares[0]
			axpy(sums.FirstSquare, share, of.FirstSquare)
			axpy(sums.Second, share, of.Second)
		}
		return sums
	}
	r.slopes = func(dst []float64, scale float64, w weighting) {
		for i, slopes := range c.labels().slopes {
			axpy(dst, scale*(w.s+w.r*mean[i]), slopes)
		}
	}
	return r
}

// Mean returns the mean residual of all labels, K, and its standard errors; nil where there are none.
func (c *ClassResiduals) Mean() (mean, se []float64) {
	if c == nil {
		return nil, nil
	}
	k := len(c.of)
	mean, se = make([]float64, k), make([]float64, k)
	if !(c.all.Sum > 0) {
		return mean, se
	}
	c.all.mean(mean, constantWeights)
	c.all.variance(se, mean, constantWeights)
	for i, v := range se {
		se[i] = math.Sqrt(v)
	}
	return mean, se
}

// sum returns the sum of the weights w = r a + s over the labels.
func (r *Residuals) sum(w weighting) float64 { return w.r*r.Mass + w.s*r.Sum }

// effective returns the effective number of labels, (sum w)²/sum w².
func (r *Residuals) effective(w weighting) float64 {
	squares := w.s*w.s*r.Squares[0] + 2*w.r*w.s*r.Squares[1] + w.r*w.r*r.Squares[2]
	return r.sum(w) * r.sum(w) / squares
}

// mean writes the weighted mean residual to d.
func (r *Residuals) mean(d []float64, w weighting) {
	mass := r.sum(w)
	for i := range d {
		d[i] = (w.r*r.First[1][i] + w.s*r.First[0][i]) / mass
	}
}

// variance writes sum (w/sum w)² (r - d)² to dst.
func (r *Residuals) variance(dst, d []float64, w weighting) {
	c := r
	if r.weighted != nil {
		c = r.weighted(w)
	}
	for i, x := range d {
		v := c.Second[i] + c.Squares[0]*x*x - 2*c.FirstSquare[i]*x
		dst[i] = max(v, 0) / (c.Sum * c.Sum) // rounding can leave less where all labels are alike
	}
}

// slope adds scale times the weighted mean derivative of the labels' posteriors to dst.
func (r *Residuals) slope(dst []float64, scale float64, w weighting) {
	if r.slopes != nil {
		r.slopes(dst, scale/r.sum(w), w)
	}
}
