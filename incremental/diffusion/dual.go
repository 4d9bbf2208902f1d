package diffusion

import (
	"errors"
	"math"

	"gqlstream/graphstore"
)

// Dual keeps, for L functions f on the vertices, the mean y(u) of f over where a walk from u stops:
// the solution of (D - (1-a) A) y = a D f. For the normalised field q of any source m it gives sum
// f q = (1/M) sum m y, so that the cost of an edge does not depend on how many sources there are.
//
// Invariant, after every call, for every vertex v and function:
//
//	R(v) = a d(v) f(v) - d(v) y(v) + (1-a) * sum over x of w(v,x) y(x)
//	|R(v)| <= a Tolerance d(v) after an Update
//
// and max |R(v)| / (a d(v)), which Certificate bounds, bounds the error of every value, because the
// rows of D^-1 A sum to one. The functions are interleaved, vertex by vertex, and those with much
// at a vertex are pushed together: an edge misses the cache once for all of them. One goroutine
// owns a Dual. Memory: 16 L + 20 bytes a vertex, 4 where there are communities of many members, and
// 8 L for every vertex with a value.
type Dual struct {
	config Config
	alpha  float64
	keep   float64
	l      int // functions
	stride int // l + 1

	y      []float64 // n x l
	cells  []float64 // n x (d, l residuals)
	rows   []uint32  // n: 1 + row of f, 0 where f is zero
	f      []float64 // rows x l
	valued []Vertex  // by row
	peak   float64   // largest |f| so far: bounds |y|
	most   []float64 // n: largest d(v) since R(v) was last computed from nothing

	following         // the graph, and the touched vertices
	bound     float64 // on |R(v)| / (alpha d(v)), rounding aside
	rounding  float64 // on the rounding error of the same, in units of 2^-53
	floor     float64 // rounding after the last rebuild
	scan      bool

	queue, next []Vertex
	queued      bitmap
	excesses    []float64 // by block: scratch of excess
	step        []float64 // l: scratch of push
	which       []int32   // l: the same
	common      []float64 // l: part of an estimate where f has not reached; see Prepare
	sums        sums

	work Work
}

// ValueChange adds Change to function Function at vertex V.
type ValueChange struct {
	V        Vertex
	Function int
	Change   float64
}

// NewDual returns the dual of functions that are zero on an empty graph.
func NewDual(config Config) (*Dual, error) {
	err := config.Validate()
	if config.Functions == 0 {
		err = errors.Join(err, errors.New("a dual has a function at least"))
	}
	if err != nil {
		return nil, err
	}
	config = config.withDefaults()
	keep := 1 - config.Alpha
	return &Dual{
		config: config, keep: keep, alpha: 1 - keep, l: config.Functions,
		stride: config.Functions + 1,
		step:   make([]float64, config.Functions), which: make([]int32, config.Functions),
		common:   make([]float64, config.Functions),
		excesses: make([]float64, (config.Functions+lanes-1)/lanes),
	}, nil
}

// Update updates the dual to view, the graph after delta, with the value changes added, and pushes
// until the error is within the tolerance. Either may be nil. A dual that has missed a delta
// recomputes its residual first. Steady updates do not allocate. It panics if a value is not
// finite.
func (g *Dual) Update(view graphstore.View, delta *graphstore.Delta, values []ValueChange) {
	g.Follow(view, delta, values)
	if g.stale {
		g.restart(view, g.config.Tolerance/iterateShort)
	}
	if g.rebuildDue(view) {
		g.rebuild(view)
	}
	g.rescan()
	g.reachTolerance(view)
}

// Follow is Update without its pushes. Until the next Update, Values are the former ones, and their
// error has no bound. The residual of several deltas at a vertex is pushed once.
func (g *Dual) Follow(view graphstore.View, delta *graphstore.Delta, values []ValueChange) {
	g.begin(view, delta)
	g.stale = g.stale || bulky(view, delta)
	g.sums.current = g.sums.current && !g.stale
	var moved []Vertex
	if g.sums.current {
		if delta != nil {
			g.sums.moveSources(g, view, delta)
		}
		moved = g.sums.moved(delta, values)
	}
	for _, v := range moved {
		g.sums.count(g, v, -1)
	}
	g.addValues(values)
	if delta != nil && !g.stale {
		g.inject(view, delta)
	}
	for _, v := range moved {
		g.sums.count(g, v, 1)
	}
}

// Solve updates the dual to view by iteration until the certificate is at most the given bound or
// rounding forbids, and returns the certificate. It needs no delta. Every vertex is touched.
func (g *Dual) Solve(view graphstore.View, values []ValueChange, certificate float64) float64 {
	g.begin(view, nil)
	g.stale = true
	g.addValues(values)
	g.restart(view, certificate)
	return g.Certificate()
}

// Functions returns L.
func (g *Dual) Functions() int { return g.l }

// Values returns y(v), one value a function: the dual's own, read-only, until the
// next Update or Solve.
func (g *Dual) Values(v Vertex) []float64 {
	return g.y[int(v)*g.l : (int(v)+1)*g.l : (int(v)+1)*g.l]
}

// Function returns f(v), nil where it has always been zero; read-only, as Values.
func (g *Dual) Function(v Vertex) []float64 {
	if int(v) >= len(g.rows) || g.rows[v] == 0 {
		return nil
	}
	row := int(g.rows[v])
	return g.f[(row-1)*g.l : row*g.l : row*g.l]
}

// Valued lists the vertices where a function is or was not zero; read-only, in no order.
func (g *Dual) Valued() []Vertex { return g.valued }

// Work returns the work of the dual so far.
func (g *Dual) Work() Work { return g.work }

// Tolerance returns the bound on the error of a value that Update keeps.
func (g *Dual) Tolerance() float64 { return g.config.Tolerance }

// Retune changes the tolerance, which must be positive, from the next Update on.
func (g *Dual) Retune(tolerance float64) {
	g.scan = g.scan || tolerance < g.config.Tolerance
	g.config.Tolerance = tolerance
}

// Halve divides the functions, and with them all values, by 2^times; times is not negative.
// Every number is divided exactly, or underflows, so the invariant and its bounds stay.
func (g *Dual) Halve(times int64) {
	if times == 0 {
		return
	}
	g.sums.current = false
	factor := math.Ldexp(1, -int(min(times, 1<<12)))
	for i := range g.y {
		g.y[i] *= factor
	}
	for i := range g.f {
		g.f[i] *= factor
	}
	for v := range g.rows {
		_, r := g.residuals(Vertex(v))
		for i := range r {
			r[i] *= factor
		}
	}
}

// Touched returns the vertices with Values that may have changed in the last Update or Solve, each
// once, in an order that equal calls repeat; valid until the next call.
func (g *Dual) Touched() []Vertex { return g.touched }

// Certificate returns a bound on the error of every value of every function.
func (g *Dual) Certificate() float64 {
	return certificate(g.bound, g.rounding)
}

func certificate(bound, rounding float64) float64 {
	return (bound + shrinkMax*rounding*unitRoundoff) * (1 + 16*unitRoundoff)
}

// scale bounds |R(v)| / (a d(v)) from the values there can be, and so the rounding
// error of one operation on it, in units of 2^-53.
func (g *Dual) scale() float64 { return (1 + 4/g.alpha) * g.peak }
