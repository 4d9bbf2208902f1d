package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
)

// Graph is a random graph with expected degrees from a power law (Chung and Lu,
// 2002, exponent 2.3) and planted groups, under a stream of the same kind: a third
// of the edges have both ends in one group. Vertices have the names 0 to n-1 in an
// order that says nothing of their degree.
type Graph struct {
	rand   *rand.Rand
	n      int
	groups int
	names  []uint32 // by rank: 0 has the largest expected degree
	ranks  []uint32 // by name

	store *graphstore.Store
	batch event.Batch
}

const (
	powerLaw    = 2.3
	rankOffset  = 10 // ranks begin there, which keeps the largest hub within reason
	groupShare  = 1.0 / 3
	groupSize   = 4000 // vertices of a planted group
	deleteEvery = 5    // one event in so many of the stream is a deletion
	buildBatch  = 1 << 14
)

// newGraph returns a graph without edges, and without a store.
func newGraph(n int, seed uint64) *Graph {
	g := &Graph{
		rand: rand.New(rand.NewPCG(seed, 0x67716c)), n: n, groups: max(2, n/groupSize),
		names: make([]uint32, n), ranks: make([]uint32, n),
	}
	for i := range g.names {
		g.names[i] = uint32(i)
	}
	g.rand.Shuffle(n, func(i, j int) { g.names[i], g.names[j] = g.names[j], g.names[i] })
	for rank, name := range g.names {
		g.ranks[name] = uint32(rank)
	}
	return g
}

// rank draws one of n ranks, the first of which has the weight of offset: weights
// fall with the power 1/(powerLaw-1), whose sum we invert as an integral.
func (g *Graph) rank(n int, offset float64) int {
	const b = 1 - 1/(powerLaw-1)
	low, high := math.Pow(offset, b), math.Pow(offset+float64(n), b)
	x := math.Pow(low+g.rand.Float64()*(high-low), 1/b) - offset
	return min(max(int(x), 0), n-1)
}

// pair draws two ends of an edge.
func (g *Graph) pair() (u, v uint32) {
	for {
		i := g.rank(g.n, rankOffset)
		j := 0
		if g.rand.Float64() < groupShare { // ranks i, i + groups, ... are one group
			of := i % g.groups
			size := (g.n - of + g.groups - 1) / g.groups
			j = of + g.groups*g.rank(size, rankOffset/float64(g.groups))
		} else {
			j = g.rank(g.n, rankOffset)
		}
		if i != j {
			return g.names[i], g.names[j]
		}
	}
}

// Edge draws an edge of weight one.
func (g *Graph) Edge() event.Edge {
	u, v := g.pair()
	return event.Edge{Src: number(u), Dst: number(v), Weight: 1}
}

// Group returns the planted group of the vertex with that name.
func (g *Graph) Group(name int) int { return int(g.ranks[name]) % g.groups }

func number(v uint32) event.ID { return event.NumberID(uint64(v)) }

// NewGraph returns the graph of n vertices without a store, to draw events from.
func (w *World) NewGraph(n int) *Graph { return newGraph(n, w.Seed) }

// shared returns the graph of the configuration, which it makes at the first call.
func (w *World) shared() (*Graph, error) {
	if w.graph != nil {
		return w.graph, nil
	}
	g := newGraph(w.Vertices, w.Seed)
	w.say("        making a graph of %d vertices and %d edges", w.Vertices, w.Edges)
	before := heap()
	store, err := graphstore.New(graphstore.Config{Classes: 2})
	if err != nil {
		return nil, err
	}
	g.store = store
	if err := g.grow(w.Edges); err != nil {
		store.Release()
		return nil, err
	}
	g.batch = event.Batch{}
	w.graph, w.heap = g, heap()-before
	return g, nil
}

// grow inserts edges until there are so many, after naming every vertex.
func (g *Graph) grow(edges int) error {
	for v := range g.n {
		g.batch.Vertices = append(g.batch.Vertices, event.Vertex{Vertex: number(uint32(v))})
		if len(g.batch.Vertices) == buildBatch || v == g.n-1 {
			g.apply()
		}
	}
	for drawn := 0; g.store.View().Edges() < edges; {
		if drawn > 20*edges {
			return fmt.Errorf("%d draws gave %d edges of %d: the graph is too dense", drawn, g.store.View().Edges(), edges)
		}
		n := min(edges-g.store.View().Edges(), buildBatch)
		for range n {
			g.batch.Edges = append(g.batch.Edges, g.Edge())
		}
		drawn += n
		g.apply()
	}
	return nil
}

// remove draws the end of an edge as insertions do, and one of its edges.
func (g *Graph) remove(view graphstore.View) event.Edge {
	for {
		u := number(g.names[g.rank(g.n, rankOffset)])
		v, _ := view.Lookup(u)
		if neighbors := view.Neighbors(v); len(neighbors) > 0 {
			return event.Edge{Src: u, Dst: view.ID(neighbors[g.rand.IntN(len(neighbors))]), Remove: true}
		}
	}
}

// draw fills the batch with events of the stream.
func (g *Graph) draw(events int) { g.drawFrom(g.store.View(), &g.batch, events) }

// drawFrom adds events of the stream to a batch, deletions of edges of the view.
func (g *Graph) drawFrom(view graphstore.View, b *event.Batch, events int) {
	for i := range events {
		if i%deleteEvery == deleteEvery-1 {
			b.Edges = append(b.Edges, g.remove(view))
		} else {
			b.Edges = append(b.Edges, g.Edge())
		}
	}
}

// apply applies the batch and empties it.
func (g *Graph) apply() (graphstore.View, *graphstore.Delta) {
	delta, _ := g.store.Apply(&g.batch)
	g.batch.Reset()
	return g.store.View(), delta
}

// change applies a batch of that many events of the stream.
func (g *Graph) change(events int) (graphstore.View, *graphstore.Delta) {
	g.draw(events)
	return g.apply()
}

// sources returns members drawn evenly.
func (g *Graph) sources(members int) []diffusion.SourceChange {
	changes := make([]diffusion.SourceChange, members)
	for i := range changes {
		changes[i] = diffusion.SourceChange{V: graphstore.Vertex(g.rand.IntN(g.n)), Change: 1}
	}
	return changes
}

func (w *World) release() {
	if w.graph != nil {
		w.graph.store.Release()
		w.graph = nil
	}
}

// heap returns the bytes that are reachable.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalised
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

const memoryReference = "Memgraph's sizing rule: 154 B"

// measureMemory counts what is reachable on the heap before and after the graph:
// adjacency in both directions, index, names, columns and spare capacity.
func measureMemory(_ context.Context, w *World) ([]Row, error) {
	g, err := w.shared()
	if err != nil {
		return nil, err
	}
	edges := g.store.View().Edges()
	grown := w.heap
	without := heap() - min(w.heap, heap())
	g.store.Compact()
	compacted := heap() - without
	runtime.KeepAlive(g)
	row := func(name string, bytes uint64, note string) Row {
		return Row{
			Name: name, Value: float64(bytes) / float64(edges), Unit: "B/edge", Reference: memoryReference,
			Note: fmt.Sprintf("%s, %d vertices, %d edges, %.0f MB", note, g.n, edges, float64(bytes)/1e6),
		}.atMost(26).atSize(w)
	}
	return []Row{
		row("memory", grown, "as it grew"),
		row("memory/compacted", compacted, "after a compaction"),
	}, nil
}
