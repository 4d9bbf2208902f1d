package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
	"gqlstream/simulate"
)

// graph is a simulated network whose edges come first and then change: about as many are made as
// dropped. Only its edges are looked at.
type graph struct {
	network *simulate.Network
	made    event.Batch // by the network
	next    int         // edge of it

	store *graphstore.Store
	batch event.Batch
}

// groupSize is about how many vertices a planted group of the network has.
const groupSize = 4000

// networkConfig describes the network of the measures: nobody changes opinion, and everybody is
// there from the start.
func (w *World) networkConfig() simulate.Config {
	c := simulate.DefaultConfig()
	c.Seed, c.Vertices, c.EdgesPerVertex = w.Seed, w.Vertices, float64(w.Edges)/float64(w.Vertices)
	c.Communities = max(2, w.Vertices/groupSize)
	c.InitialShare, c.Duration, c.Activity, c.StepEvery = 1, 0, 1e6, time.Millisecond
	c.Drift, c.Churn, c.JumpEvery, c.MoveShare = 0, 0, 0, 0
	return c
}

// newGraph returns a graph whose store has no edges yet.
func (w *World) newGraph() (*graph, error) {
	network, err := simulate.New(w.networkConfig())
	if err != nil {
		return nil, err
	}
	store, err := graphstore.New(graphstore.Config{Classes: 2})
	if err != nil {
		return nil, err
	}
	return &graph{network: network, store: store}, nil
}

// grown returns a graph of about as many edges as the configuration says.
func (w *World) grown(ctx context.Context) (*graph, error) {
	g, err := w.newGraph()
	if err != nil {
		return nil, err
	}
	w.say("        making a graph of %d vertices and %d edges", w.Vertices, w.Edges)
	for left := w.Edges; left > 0; left -= buildBatch {
		if _, _, err := g.change(ctx, min(left, buildBatch)); err != nil {
			g.store.Release()
			return nil, err
		}
	}
	return g, nil
}

// buildBatch is the number of edges in a batch while a graph grows.
const buildBatch = 1 << 14

// shared returns the graph that several measures use, which the first call makes.
func (w *World) shared(ctx context.Context) (_ *graph, err error) {
	if w.graph == nil {
		w.graph, err = w.grown(ctx)
	}
	return w.graph, err
}

// draw fills the batch with the next n edge events of the network.
func (g *graph) draw(ctx context.Context, n int) error {
	for n > 0 {
		if g.next == len(g.made.Edges) {
			if err := g.network.Next(ctx, &g.made); err != nil {
				return err
			}
			g.next = 0
		}
		some := g.made.Edges[g.next:]
		some = some[:min(n, len(some))]
		g.batch.Edges = append(g.batch.Edges, some...)
		g.next, n = g.next+len(some), n-len(some)
	}
	return nil
}

// apply applies the batch and empties it.
func (g *graph) apply() (graphstore.View, *graphstore.Delta) {
	delta, _ := g.store.Apply(&g.batch)
	g.batch.Reset()
	return g.store.View(), delta
}

// change applies the next n edge events of the network.
func (g *graph) change(ctx context.Context, n int) (view graphstore.View, delta *graphstore.Delta, err error) {
	if err = g.draw(ctx, n); err == nil {
		view, delta = g.apply()
	}
	return view, delta, err
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

// measureMemory counts what is reachable on the heap with a graph as it grew and without it:
// adjacency in both directions, index, names, columns and spare capacity.
func measureMemory(ctx context.Context, w *World) ([]Row, error) {
	g, err := w.grown(ctx)
	if err != nil {
		return nil, err
	}
	g.network = nil // it is not counted
	view := g.store.View()
	vertices, edges, with := view.Vertices(), view.Edges(), heap()
	runtime.KeepAlive(g)
	bytes := with - min(with, heap())
	return []Row{Row{
		Name: "memory", Value: float64(bytes) / float64(edges), Unit: "B/edge", Reference: "Memgraph's sizing rule: 154 B",
		Note: fmt.Sprintf("as it grew, %d vertices, %d edges, %.0f MB", vertices, edges, float64(bytes)/1e6),
	}.atMost(30).atSize(w)}, nil
}
