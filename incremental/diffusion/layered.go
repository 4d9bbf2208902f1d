package diffusion

import (
	"errors"
	"fmt"

	"gqlstream/graphstore"
)

// LayeredConfig says which walk of a fixed number of steps a Layered keeps, and how
// well.
type LayeredConfig struct {
	Kernel    string  // Truncated or Lazy
	Alpha     float64 // as in KernelParams; 0 is AlphaDefault
	Steps     int     // S, 1 to layersMax; 0 is 10
	Tolerance float64 // bound on the certificate after an Update; 0 is ToleranceDefault
}

const layersMax = 64 // bounds memory: 24 bytes a vertex and step

// Validate reports every violation.
func (c LayeredConfig) Validate() error {
	c = c.withDefaults()
	err := Config{Alpha: c.Alpha, Tolerance: c.Tolerance}.Validate()
	if c.Kernel != Truncated && c.Kernel != Lazy {
		err = errors.Join(err, fmt.Errorf("kernel is %q, want %s or %s", c.Kernel, Truncated, Lazy))
	}
	if c.Steps < 1 || c.Steps > layersMax {
		err = errors.Join(err, fmt.Errorf("steps is %d, want 1 to %d", c.Steps, layersMax))
	}
	return err
}

func (c LayeredConfig) withDefaults() LayeredConfig {
	p := KernelParams{Alpha: c.Alpha, Steps: c.Steps}.withDefaults()
	c.Alpha, c.Steps = p.Alpha, p.Steps
	if c.Tolerance == 0 {
		c.Tolerance = ToleranceDefault
	}
	return c
}

// Layered keeps a kernel of S steps, truncated or lazy, current while edges, weights
// and sources change. Step k of the walk has a layer of its own: y_k = D^-1 x_k,
// with x_0 = m and, where A holds no self-loops and W is the walk's share that stays,
//
//	truncated:  x_k = (1-a) (A + I) y_(k-1) + a m,  D = degree + 1
//	lazy:       x_k = (1-a) A y_(k-1) + a D y_(k-1), D = degree; 1 for a vertex without
//	            edges, which keeps what it has
//
// Invariant, after every call: R_k(v) is what the right-hand side exceeds d(v) y_k(v)
// by, for k < S, and the last layer is kept as x_S itself, without a residual. As in
// Field, R is affine in the graph for y held fixed, so that a batch is an order-free
// sum. A push at layer k moves R_k(v) into y_k(v) and over the neighbours in layer
// k + 1 only: one pass over the layers settles everything, and no update costs more
// than the S passes of a recompute.
//
// An error at layer k reaches x_S through S - k steps, each of L1 norm g = 1-a
// (truncated) or 1 (lazy), so Certificate = sum over k of g^(S-k) |R_k| / M bounds
// the L1 error of the normalised kernel; our rounding is in it. One goroutine owns a
// Layered. Memory: 24 S + 16 bytes a vertex.
type Layered struct {
	config LayeredConfig
	keep   float64   // 1-a
	alpha  float64   // 1 - keep, exactly
	lazy   bool      //
	gains  []float64 // S: g^(S-k)

	following // the graph, and what was touched
	members   // the source

	layers []layer   // S
	last   []float64 // n: x_S

	residual float64 // running sum over k of gains[k] |R_k|
	rounding float64 // bound on our rounding errors, L1, in units of 2^-53
	floor    float64 // rounding after the last rebuild or solve
	lift     float64 // where the bar of the last sweep stood, 1 or more, as in Field

	work Work
}

// layer is one step of the walk.
type layer struct {
	y      []float64 // n
	cells  []cell    // n: R_k and d
	queue  []Vertex
	queued bitmap
}

// NewLayered returns the kernel of an empty graph without sources.
func NewLayered(config LayeredConfig) (*Layered, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("diffusion: %w", err)
	}
	config = config.withDefaults()
	keep := 1 - config.Alpha
	l := &Layered{
		config: config, keep: keep, alpha: 1 - keep, lazy: config.Kernel == Lazy, lift: liftStart,
		layers: make([]layer, config.Steps), gains: make([]float64, config.Steps),
	}
	gain := 1.0
	for k := config.Steps - 1; k >= 0; k-- {
		if !l.lazy {
			gain *= keep
		}
		l.gains[k] = gain
	}
	return l, nil
}

// Update brings the kernel to view, which delta led to, with the source changes
// added, until the certificate is at most the tolerance. Either may be nil. It
// panics if a multiplicity would become negative or is not a number. Steady updates
// do not allocate.
func (l *Layered) Update(view graphstore.View, delta *graphstore.Delta, sources []SourceChange) {
	l.begin(view, delta)
	l.addSources(sources)
	switch {
	case l.stale || bulky(view, delta) || l.sources == 0 && l.rounding != 0:
		l.walk(view) // without sources everything is zero, and then stays so
		return
	case delta != nil:
		l.inject(view, delta)
	}
	if l.rebuildDue(view) {
		l.rebuild(view)
	}
	l.settle(view)
}

// Solve brings the kernel to view by walking its S steps, exactly but for rounding
// whatever certificate is asked for, and returns the certificate. It needs no delta.
// Every vertex is touched.
func (l *Layered) Solve(view graphstore.View, sources []SourceChange, _ float64) float64 {
	l.begin(view, nil)
	l.stale = true
	l.addSources(sources)
	l.walk(view)
	return l.Certificate()
}

// Mass returns x_S(v), the mass of the walks that stop at v: M q(v). It is zero for
// a vertex that the kernel has not seen yet.
func (l *Layered) Mass(v Vertex) float64 {
	if int(v) >= len(l.last) {
		return 0
	}
	return l.last[v]
}

// Touched returns the vertices whose Mass may have changed in the last Update or
// Solve, each once, in an order that equal calls repeat; valid until the next.
func (l *Layered) Touched() []Vertex { return l.touched }

// Vertices returns how many vertices the kernel has seen.
func (l *Layered) Vertices() int { return len(l.last) }

// Work returns what the kernel has done so far; its Solves are walks from nothing.
func (l *Layered) Work() Work { return l.work }

// Certificate returns a bound on the L1 distance between the normalised kernel
// Mass/M and the exact one; 0 without sources.
func (l *Layered) Certificate() float64 {
	if l.sources == 0 {
		return 0
	}
	return (max(l.residual, 0) + l.rounding*unitRoundoff) * (1 + 16*unitRoundoff) / l.sourceSum
}

// degree returns d(v) for v's sum of edge weights: with the self-loop of the kernel.
func (l *Layered) degree(weights float64) float64 {
	switch {
	case !l.lazy:
		return weights + 1
	case weights == 0:
		return 1
	}
	return weights
}

// stays returns what x_k(v) takes of y_(k-1)(v): the share of the walk that stays.
func (l *Layered) stays(d float64, isolated bool) float64 {
	switch {
	case !l.lazy:
		return l.keep
	case isolated:
		return 1
	}
	return l.alpha * d
}

// restarts returns what x_k(v) takes of the source.
func (l *Layered) restarts() float64 {
	if l.lazy {
		return 0
	}
	return l.alpha
}
