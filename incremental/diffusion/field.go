package diffusion

import (
	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// Field is the ppr field of one source. One goroutine owns it at a time.
type Field struct {
	config Config
	alpha  float64 // 1 - keep, exactly, so that rounding cannot part the two
	keep   float64

	following // the graph, and the touched vertices

	source    []float64 // n: m
	sourceSum float64   // M
	sources   int       // vertices with a source

	z []float64 // n: the solution
	r []float64 // n: the residual, all that a push reads and writes of each neighbour
	d []float64 // n: the degree, self-loop included; exact

	residual float64 // sum of |R|; pushes leave it unchanged until queueAbove sums again
	signed   float64 // running sum of R
	rounding float64 // bound on the rounding error in R and residual, L1, in units of 2^-53
	floor    float64 // rounding after the last rebuild
	lift     float64 // where the bar of the last sweep stood, 1 or more; see reachTolerance

	queue []Vertex // vertices to push
	read  float64  // result of readNeighbors

	work Work
}

// Work counts the operations of a field since its creation.
type Work struct {
	Pushes     uint64 // vertices pushed
	Traversals uint64 // neighbours visited by pushes
	Iterations uint64 // passes over the whole graph by iteration
	Solves     uint64 // iterations, fallbacks of Update included
	Rebuilds   uint64 // residuals computed from nothing
	Shifts     uint64 // constants added to the whole field

	ShiftedAt uint64 // effort at the last shift, tried or done
	RebuiltAt uint64 // Traversals at the last rebuild
	Injected  uint64 // edge changes
}

// SourceChange adds Change to the multiplicity of V in the source.
type SourceChange struct {
	V      Vertex
	Change float64
}

// Sources lists the unlabelled members of a community, the starts of its kernel's walks.
func Sources(id graphstore.Community, view graphstore.View) (list []SourceChange) {
	view.ForMembers(id, func(v Vertex, multiplicity uint32) {
		if view.Label(v).Class == event.NoClass {
			list = append(list, SourceChange{V: v, Change: float64(multiplicity)})
		}
	})
	return list
}

// NewField returns the field of an empty graph without sources.
func NewField(config Config) (*Field, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	keep := 1 - config.Alpha
	return &Field{
		config: config, keep: keep, alpha: 1 - keep, lift: liftStart,
	}, nil
}

// Update updates the field to view, the graph after delta, with the source changes added, and
// pushes until the certificate is at most the tolerance. Either may be nil. A field that has missed
// a delta, seen in the sums of vertices and degrees, recomputes its residual first. It panics if a
// multiplicity would become negative or is not a number. Steady updates do not allocate.
func (f *Field) Update(view graphstore.View, delta *graphstore.Delta, sources []SourceChange) {
	f.begin(view, delta)
	f.addSources(sources)
	switch {
	case f.stale || bulky(view, delta):
		f.restart(view, f.config.Tolerance/iterateShort)
	case delta != nil:
		f.inject(view, delta)
	}
	if f.rebuildDue(view) {
		f.rebuild(view)
	}
	if f.sources == 0 {
		f.vanish()
	}
	f.reachTolerance(view)
}

// Solve updates the field to view by iteration, with the present z as the start, until the
// certificate is at most the given bound (0: the tolerance) or rounding forbids, and returns the
// certificate. It needs no delta: use it to start a field, or for a better certificate than Update
// keeps. Every vertex is touched.
func (f *Field) Solve(view graphstore.View, sources []SourceChange, certificate float64) float64 {
	if certificate <= 0 {
		certificate = f.config.Tolerance
	}
	f.begin(view, nil)
	f.stale = true
	f.addSources(sources)
	f.restart(view, certificate)
	return f.Certificate()
}

// restart computes R from z and iterates.
func (f *Field) restart(view graphstore.View, certificate float64) {
	f.touchAll(len(f.z))
	f.rebuild(view)
	if f.sources == 0 {
		f.vanish()
	}
	f.iterate(view, certificate)
}

// Mass returns a(v) = d(v) z(v), the mass of the walks that stop at v: M q(v).
// It is zero for a vertex that the field has not seen yet. The certificate bounds the
// errors of all vertices together; that of one may be all of it.
func (f *Field) Mass(v Vertex) float64 {
	if int(v) >= len(f.z) {
		return 0
	}
	return f.d[v] * f.z[v]
}

// Touched returns the vertices with a Mass that may have changed in the last Update or Solve,
// degrees included, each once, in an order that equal calls repeat. The slice is the field's own
// and valid until the next of these calls.
func (f *Field) Touched() []Vertex { return f.touched }

// SourceSum returns M, the sum of the multiplicities.
func (f *Field) SourceSum() float64 { return f.sourceSum }

// Source returns the multiplicity of v.
func (f *Field) Source(v Vertex) float64 {
	if int(v) >= len(f.source) {
		return 0
	}
	return f.source[v]
}

// Work returns the work of the field so far.
func (f *Field) Work() Work { return f.work }

// Tolerance returns the bound on the certificate that Update keeps.
func (f *Field) Tolerance() float64 { return f.config.Tolerance }

// Retune changes the tolerance, which must be positive, from the next Update on.
func (f *Field) Retune(tolerance float64) { f.config.Tolerance = tolerance }

// Certificate returns a bound on the L1 distance between the normalised field
// Mass/M and the exact one: sum |R| / (a M), with the rounding of R and of the sum
// itself added. It is 0 without sources.
func (f *Field) Certificate() float64 {
	if f.sources == 0 {
		return 0
	}
	return f.bound() / (f.alpha * f.sourceSum)
}

// bound returns a bound on the sum of the |R| that exact arithmetic would give.
func (f *Field) bound() float64 {
	return (max(f.residual, 0) + f.rounding*unitRoundoff) * (1 + 16*unitRoundoff)
}

// unitRoundoff is the largest relative error of one float64 operation.
const unitRoundoff = 1.0 / (1 << 53)
