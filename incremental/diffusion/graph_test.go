package diffusion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// randomGraph is a power-law graph (Chung and Lu, 2002, exponent 2.3) under a
// stream of insertions of the same kind and 20 % deletions of random edges.
type randomGraph struct {
	r     *rand.Rand
	store *graphstore.Store
	batch event.Batch
	cum   []float64
	names []uint64
}

func newRandomGraph(t testing.TB, r *rand.Rand, n, edges int) *randomGraph {
	store, err := graphstore.New(graphstore.Config{Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	g := &randomGraph{r: r, store: store, cum: make([]float64, n), names: make([]uint64, n)}
	sum := 0.0
	for i := range n {
		sum += math.Pow(float64(i)+10, -1/1.3)
		g.cum[i] = sum
		g.names[i] = uint64(i)
	}
	r.Shuffle(n, func(i, j int) { g.names[i], g.names[j] = g.names[j], g.names[i] })
	for store.View().Edges() < edges {
		for range min(edges-store.View().Edges(), 1<<16) {
			g.insert()
		}
		g.apply()
	}
	for i := range n {
		g.batch.Vertices = append(g.batch.Vertices, event.Vertex{Vertex: event.NumberID(uint64(i))})
	}
	g.apply()
	g.store.Compact()
	return g
}

func (g *randomGraph) draw() uint64 {
	i, _ := slices.BinarySearch(g.cum, g.r.Float64()*g.cum[len(g.cum)-1])
	return g.names[min(i, len(g.names)-1)]
}

func (g *randomGraph) insert() {
	u, v := g.draw(), g.draw()
	for u == v {
		v = g.draw()
	}
	g.batch.Edges = append(
		g.batch.Edges,
		event.Edge{Src: event.NumberID(u), Dst: event.NumberID(v), Weight: 1},
	)
}

// remove names a random edge, of an endpoint drawn like those of insertions.
func (g *randomGraph) remove() {
	view := g.store.View()
	for {
		id := event.NumberID(g.draw())
		u, _ := view.Lookup(id)
		if neighbors := view.Neighbors(u); len(neighbors) > 0 {
			v := neighbors[g.r.IntN(len(neighbors))]
			g.batch.Edges = append(
				g.batch.Edges,
				event.Edge{Src: id, Dst: view.ID(v), Remove: true},
			)
			return
		}
	}
}

func (g *randomGraph) apply() (graphstore.View, *graphstore.Delta) {
	delta, _ := g.store.Apply(&g.batch)
	g.batch.Reset()
	return g.store.View(), delta
}

// change applies a batch of that many events.
func (g *randomGraph) change(events int) (graphstore.View, *graphstore.Delta) {
	for i := range events {
		if i%5 == 4 || events < 5 && g.r.IntN(5) == 0 {
			g.remove()
		} else {
			g.insert()
		}
	}
	return g.apply()
}
