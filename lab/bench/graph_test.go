package bench

import (
	"runtime"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
)

// graph is a simulated network: its edges come first and then change, about as many added
// as removed. Only edges are measured.
type graph struct {
	network *simulate.Network
	made    event.Batch // by the network
	next    int         // edge of it

	store *graphstore.Store
	batch event.Batch
}

// groupSize is about how many vertices a planted group of the network has.
const groupSize = 4000

// network describes a network where nobody changes opinion and everybody is there from the
// start.
func (s size) network() simulate.Config {
	c := simulate.DefaultConfig()
	c.Seed, c.Vertices, c.EdgesPerVertex = seed, s.vertices, float64(s.edges)/float64(s.vertices)
	c.Communities = max(2, s.vertices/groupSize)
	c.InitialShare, c.Duration, c.Activity, c.StepEvery = 1, 0, 1e6, time.Millisecond
	c.Drift, c.Churn, c.JumpEvery, c.MoveShare = 0, 0, 0, 0
	c.PostRate, c.LabelRate = c.Activity/8, 0
	return c
}

// newGraph returns a graph with a store without edges.
func newGraph(tb testing.TB, conf simulate.Config) *graph {
	tb.Helper()
	network, err := simulate.New(conf)
	check(tb, err)
	store, err := graphstore.New(graphstore.Config{Classes: 2})
	check(tb, err)
	return &graph{network: network, store: store}
}

// buildBatch is the number of edges in a batch while a graph grows.
const buildBatch = 1 << 14

// grownGraph returns a graph of about as many edges as the size says.
func grownGraph(tb testing.TB, s size) *graph {
	tb.Helper()
	g := newGraph(tb, s.network())
	for left := s.edges; left > 0; left -= buildBatch {
		g.change(tb, min(left, buildBatch))
	}
	return g
}

// draw adds the next n edge events of the network to the batch.
func (g *graph) draw(tb testing.TB, n int) {
	tb.Helper()
	for n > 0 {
		if g.next == len(g.made.Edges) {
			check(tb, g.network.Next(tb.Context(), &g.made))
			g.next = 0
		}
		some := g.made.Edges[g.next:]
		some = some[:min(n, len(some))]
		g.batch.Edges = append(g.batch.Edges, some...)
		g.next, n = g.next+len(some), n-len(some)
	}
}

// apply applies the batch and empties it.
func (g *graph) apply() (graphstore.View, *graphstore.Delta) {
	delta, _ := g.store.Apply(&g.batch)
	g.batch.Reset()
	return g.store.View(), delta
}

// change applies the next n edge events of the network.
func (g *graph) change(tb testing.TB, n int) (graphstore.View, *graphstore.Delta) {
	tb.Helper()
	g.draw(tb, n)
	return g.apply()
}

// sources returns members at equal distances, half of the vertices at most.
func (g *graph) sources(members int) []diffusion.SourceChange {
	n := g.store.View().Vertices()
	changes := make([]diffusion.SourceChange, min(members, n/2))
	for i := range changes {
		changes[i] = diffusion.SourceChange{V: graphstore.Vertex(i * n / len(changes)), Change: 1}
	}
	return changes
}

// heap returns the bytes that are reachable.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // objects that the first one finalised
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// measureMemory counts the reachable bytes on the heap with a graph as it grew and without
// it: adjacency in both directions, index, names, columns and spare capacity.
func measureMemory(tb testing.TB, s size) map[string]float64 {
	g := grownGraph(tb, s)
	g.network = nil // it is not counted
	edges, with := g.store.View().Edges(), heap()
	runtime.KeepAlive(g)
	return map[string]float64{"B/edge": float64(with-min(with, heap())) / float64(edges)}
}
