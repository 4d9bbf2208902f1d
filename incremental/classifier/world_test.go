package classifier

import (
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event/eventtest"
)

// world is a store under a random history with labels of both roles, outside
// predictions that come and go, and erasures.
type world struct {
	t      testing.TB
	seed   uint64
	stream *eventtest.Stream
	store  *graphstore.Store
}

func newWorld(t testing.TB, seed uint64) *world {
	stream := eventtest.New(seed, eventtest.Config{
		Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0, Withdraw: true,
	})
	store, err := graphstore.New(graphstore.Config{Classes: stream.Config.Classes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Release)
	return &world{t: t, seed: seed, stream: stream, store: store}
}

// next applies a batch. Few vertices keep an outside prediction, or there would be
// little left to predict.
func (w *world) next() (graphstore.View, *graphstore.Delta) {
	b := w.stream.Next()
	for i := range b.Predictions {
		if b.Predictions[i].Position%3 > 0 {
			b.Predictions[i].Units = nil
		}
	}
	delta, _ := w.store.Apply(b)
	return w.store.View(), delta
}

// outside reports whether an event predicts v.
func outside(view graphstore.View, v Vertex) bool {
	return view.Prediction(v) != nil && !graphstore.IsDerived(view.Versions()[view.Version(v)])
}

// neighbours visits the neighbours of v with the weights of their edges.
func neighbours(view graphstore.View, v Vertex, visit func(u Vertex, weight float64)) {
	weights := view.Weights(v)
	for i, u := range view.Neighbors(v) {
		if weights == nil {
			visit(u, 1)
		} else {
			visit(u, weights[i])
		}
	}
}
