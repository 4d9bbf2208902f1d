package quant

import (
	"math"
	"slices"
	"sync"
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
	// differ from those of now: the error of the coefficients that it had is taken while that hardly
	// changes. Nil has it computed.
	Last     *Snapshot
	Turnover Turnover
}

// Residuals are sums over the calibration labels of r = y - pi, label less posterior, times powers
// of the kernel mass a of the label's vertex and of the weight g of the label itself. The weighted
// mean and its covariance follow from them for every weighting, as from the tallies.
type Residuals struct {
	K           int
	Sum, Mass   float64      // sums of g and g a
	First       [2][]float64 // K: sums of g r and g a r
	Squares     [3]float64   // sums of g², g² a, g² a²
	FirstSquare [][]float64  // K: sums of the same times r
	Second      [][]float64  // K x K, lower triangle: times r r'

	// Slope holds sums of g and g a times the derivative of pi by the coefficients,
	// K x (Shared + K), once FillSlope has done so.
	Slope [2][]float64
	fill  func()
	row   []float64

	waiting []float64    // up to 4 x K: residuals that Second does not have yet; see Complete
	weights [3][]float64 // of them

	labels *LabelResiduals // nil, or what FirstSquare and Second are read from
	masses []float64       // a of each of these
}

// NewMeanResiduals returns the sums of no label, of which only the mean can be read.
func NewMeanResiduals(k int) *Residuals {
	x := make([]float64, 3*k)
	return &Residuals{K: k, First: [2][]float64{x[:k:k], x[k : 2*k : 2*k]}, row: x[2*k:]}
}

// LabelResiduals are the residuals of all labels, which many estimates weigh by masses of their own.
type LabelResiduals struct {
	equal *Residuals // as if all had the mass 0
	rows  []float64  // n x K
	gains []float64  // g of each
}

// NewLabelResiduals returns those of no label.
func NewLabelResiduals(k int) *LabelResiduals { return &LabelResiduals{equal: NewResiduals(k, 0)} }

// Add adds one label.
func (l *LabelResiduals) Add(class int, g float64, pi []float64) {
	l.equal.Add(class, 0, g, pi)
	l.rows, l.gains = append(l.rows, l.equal.row...), append(l.gains, g)
}

// Complete makes them ready to be read by several goroutines.
func (l *LabelResiduals) Complete() { l.equal.Complete() }

// Weigh returns the sums for labels of these masses, which it keeps, and for posteriors with so many shared coefficients.
func (l *LabelResiduals) Weigh(masses []float64, shared int) *Residuals {
	k := l.equal.K
	r := NewMeanResiduals(k)
	r.labels, r.masses, r.Sum, r.First[0] = l, masses, l.equal.Sum, l.equal.First[0]
	r.Slope = [2][]float64{make([]float64, k*(shared+k)), make([]float64, k*(shared+k))}
	weights := make([]float64, len(masses))
	for i, g := range l.gains {
		weights[i] = g * masses[i]
		r.Mass += weights[i]
		r.Squares[0], r.Squares[1], r.Squares[2] = r.Squares[0]+g*g, r.Squares[1]+g*weights[i], r.Squares[2]+weights[i]*weights[i]
	}
	combine(r.First[1], weights, l.rows)
	return r
}

// weighted returns the sums for labels of weights g w(a) and of no mass: in a pass for each w, where sums for all
// would take three.
func (l *LabelResiduals) weighted(masses []float64, w weighting) *Residuals {
	r := NewResiduals(l.equal.K, 0)
	squares := make([]float64, len(masses))
	for i, a := range masses {
		weight := l.gains[i] * (w.r*a + w.s)
		squares[i] = weight * weight
		r.Sum, r.Squares[0] = r.Sum+weight, r.Squares[0]+squares[i]
	}
	combine(r.FirstSquare[0], squares, l.rows)
	addOuters(r.Second[0], squares, l.rows, r.K)
	return r
}

// NewResiduals returns the sums of no label, for posteriors with so many shared coefficients.
func NewResiduals(k, shared int) *Residuals {
	r := NewMeanResiduals(k)
	for range 3 {
		r.FirstSquare, r.Second = append(r.FirstSquare, make([]float64, k)), append(r.Second, make([]float64, k*k))
	}
	r.Slope = [2][]float64{make([]float64, k*(shared+k)), make([]float64, k*(shared+k))}
	return r
}

// Add counts one label, whose second moments may wait for Complete.
func (r *Residuals) Add(class int, a, g float64, pi []float64) {
	for i, p := range pi {
		r.row[i] = -p
	}
	r.row[class]++
	r.Sum, r.Mass = r.Sum+g, r.Mass+g*a
	axpy(r.First[0], g, r.row)
	axpy(r.First[1], g*a, r.row)
	for p, weight := range [...]float64{g * g, g * g * a, g * g * a * a} {
		if r.Squares[p] += weight; r.Second != nil {
			axpy(r.FirstSquare[p], weight, r.row)
			r.weights[p] = append(r.weights[p], weight)
		}
	}
	if r.Second == nil {
		return
	}
	if r.waiting = append(r.waiting, r.row...); len(r.waiting) == 4*r.K {
		r.Complete()
	}
}

// Complete makes Second current: labels are added to it four at a time. Where none waits it changes nothing,
// so that several goroutines may call it.
func (r *Residuals) Complete() {
	if len(r.waiting) == 0 {
		return
	}
	for p, weights := range r.weights {
		if slices.ContainsFunc(weights, func(w float64) bool { return w != 0 }) {
			addOuters(r.Second[p], weights, r.waiting, r.K)
		}
		r.weights[p] = weights[:0]
	}
	r.waiting = r.waiting[:0]
}

// FillSlope has fill add up Slope when it is read, once: most estimates do not. It may be read by several goroutines.
func (r *Residuals) FillSlope(fill func()) { r.fill = sync.OnceFunc(fill) }

// readSlope makes Slope current.
func (r *Residuals) readSlope() {
	if r.fill != nil {
		r.fill()
	}
}

// AddSlope counts the derivative of the posterior of a label, which stands for so many like it.
func (r *Residuals) AddSlope(a, g, labels float64, pi, views []float64) {
	addSlope(r.Slope[0], labels*g, pi, views)
	if a != 0 {
		addSlope(r.Slope[1], labels*g*a, pi, views)
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
		mean := dot(p, x)
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

// SpreadResiduals returns the sums for one community where single masses are not known:
// from the residuals of the labels of each class, counted with the mass 0, the sums of a
// and a² by class and that of a r, taking the labels of one class for alike otherwise.
func SpreadResiduals(classes []*Residuals, a1, a2, first []float64) *Residuals {
	k := len(classes)
	r := NewResiduals(k, len(classes[0].Slope[0])/k-k)
	for i, c := range classes {
		if !(c.Sum > 0) {
			continue
		}
		c.Complete()
		r.Sum += c.Sum
		r.Mass += a1[i]
		axpy(r.First[0], 1, c.First[0])
		shares := [3]float64{1, a1[i] / c.Sum, a2[i] / c.Sum}
		for p, share := range shares {
			r.Squares[p] += share * c.Squares[0]
			axpy(r.FirstSquare[p], share, c.FirstSquare[0])
			axpy(r.Second[p], share, c.Second[0])
		}
	}
	copy(r.First[1], first)
	r.FillSlope(func() {
		for i, c := range classes {
			if c.Sum > 0 {
				c.readSlope()
				axpy(r.Slope[0], 1, c.Slope[0])
				axpy(r.Slope[1], a1[i]/c.Sum, c.Slope[0])
			}
		}
	})
	return r
}

// MeanResidual returns the mean residual of all labels, K, and its standard errors, from the residuals of the
// labels of each class; nil where there are none.
func MeanResidual(classes []*Residuals) (mean, se []float64) {
	if len(classes) == 0 {
		return nil, nil
	}
	k := len(classes)
	none := make([]float64, k)
	all := SpreadResiduals(classes, none, none, none)
	mean, se = make([]float64, k), make([]float64, k)
	if !(all.Sum > 0) {
		return mean, se
	}
	covariance := make([]float64, k*k)
	all.mean(mean, constantWeights)
	all.covariance(covariance, mean, constantWeights)
	for i := range se {
		se[i] = math.Sqrt(max(0, covariance[i*k+i]))
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

// covariance writes sum (w/sum w)² (r - d)(r - d)' to dst, both triangles.
func (r *Residuals) covariance(dst, d []float64, w weighting) {
	switch {
	case r.labels == nil:
		r.Complete()
	case w.r == 0:
		r = r.labels.equal
	default:
		r, w = r.labels.weighted(r.masses, w), constantWeights
	}
	mass := r.sum(w)
	c := [3]float64{w.s * w.s, 2 * w.r * w.s, w.r * w.r}
	square := c[0]*r.Squares[0] + c[1]*r.Squares[1] + c[2]*r.Squares[2]
	first := func(i int) float64 {
		return c[0]*r.FirstSquare[0][i] + c[1]*r.FirstSquare[1][i] + c[2]*r.FirstSquare[2][i]
	}
	for i := range r.K {
		for j := range i + 1 {
			at := i*r.K + j
			x := c[0]*r.Second[0][at] + c[1]*r.Second[1][at] + c[2]*r.Second[2][at]
			x += square*d[i]*d[j] - first(i)*d[j] - d[i]*first(j)
			dst[at] = x / (mass * mass)
			dst[j*r.K+i] = dst[at]
		}
	}
}

// slope adds scale times the weighted mean derivative of the labels' posteriors to dst.
func (r *Residuals) slope(dst []float64, scale float64, w weighting) {
	r.readSlope()
	mass := r.sum(w)
	axpy(dst, scale*w.s/mass, r.Slope[0])
	axpy(dst, scale*w.r/mass, r.Slope[1])
}
