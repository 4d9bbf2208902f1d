package diffusion

import (
	"fmt"
	"math"

	"gqlstream/graphstore"
)

// TogetherMax bounds the sources of SolveTogether.
const TogetherMax = lanes

// Solved holds the masses of up to four sources, each solved from nothing for one view and not
// kept current: those of a Field for less than half the time.
type Solved struct {
	keep     float64
	diagonal []float64 // n
	z        []float64 // n x lanes
	passes   uint64
}

// SolveTogether solves for 1 to TogetherMax sources, as lists of vertices, each once,
// and their multiplicities. The residual that the iteration keeps meets the tolerance of
// the configuration for every source; its own rounding is not accounted for.
func SolveTogether(view graphstore.View, config Config, sources [][]SourceChange) (*Solved, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("diffusion: %w", err)
	}
	if len(sources) == 0 || len(sources) > lanes {
		panic(fmt.Sprintf("diffusion: %d sources together, want 1 to %d", len(sources), lanes))
	}
	config = config.withDefaults()
	n, keep := view.Vertices(), 1-config.Alpha
	alpha := 1 - keep
	b := newBlock(n, keep)
	for v := range n {
		b.diagonal[v] = view.Degree(Vertex(v)) + 1 - keep
	}
	var goals lane
	for i, list := range sources {
		for _, s := range list {
			b.r[s.V][i] += alpha * s.Change
			goals[i] += config.Tolerance * alpha * math.Abs(s.Change)
		}
	}
	s := &Solved{keep: keep, diagonal: b.diagonal, z: make([]float64, n*lanes)}
	s.passes = b.run(view, s.z, lanes, lanes, goals, math.Inf(1))
	return s, nil
}

// Value returns M q(v)/d(v) of the i-th source. Where sources are d f, it is the value of f's dual at v, because the kernel is
// symmetric: (D - (1-a) A) y = a D f.
func (s *Solved) Value(i int, v Vertex) float64 { return s.z[int(v)*lanes+i] }

// Mass returns M q(v) of the i-th source.
func (s *Solved) Mass(i int, v Vertex) float64 {
	return (s.diagonal[v] + s.keep) * s.z[int(v)*lanes+i]
}

// Passes returns the number of passes over the graph, each for all sources.
func (s *Solved) Passes() uint64 { return s.passes }
