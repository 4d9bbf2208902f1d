package diffusion

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// world is a store under a random history.
type world struct {
	t        testing.TB
	r        *rand.Rand
	store    *graphstore.Store
	batch    event.Batch
	known    int // vertices named so far
	max      int // most vertices ever
	weighted bool
	sources  map[Vertex]float64
}

func newWorld(t testing.TB, seed uint64, most int, weighted bool) *world {
	store, err := graphstore.New(graphstore.Config{Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, r: rand.New(rand.NewPCG(seed, 7)), store: store, known: 2, max: most,
		weighted: weighted, sources: map[Vertex]float64{},
	}
}

func (w *world) edge(u, v int, weight float64) {
	w.batch.Edges = append(w.batch.Edges, event.Edge{
		Src: event.NumberID(uint64(u)), Dst: event.NumberID(uint64(v)),
		Weight: max(weight, event.WeightUnit), Remove: weight == 0,
	})
}

func (w *world) weight() float64 {
	switch {
	case !w.weighted:
		return 1
	case w.r.IntN(20) == 0:
		return event.RoundWeight(min(1e7, max(1e-5, math.Exp(w.r.NormFloat64()*5))))
	}
	return event.RoundWeight(0.1 + 3*w.r.Float64())
}

// step adds one event of any kind to the batch.
func (w *world) step() {
	u, v := w.r.IntN(w.known), w.r.IntN(w.known)
	switch k := w.r.IntN(100); {
	case k < 10 && w.known < w.max:
		w.edge(w.known, u, w.weight())
		w.known++
	case k < 25:
		if u != 0 {
			w.edge(0, u, w.weight()) // a hub
		}
	case k < 60:
		if u != v {
			w.edge(u, v, w.weight())
		}
	case k < 62:
		for v := range w.known {
			if u != v {
				w.edge(u, v, 0) // to isolation
			}
		}
	case u != v:
		w.edge(u, v, 0)
	}
}

// apply applies the batch.
func (w *world) apply() (graphstore.View, *graphstore.Delta) {
	delta, refused := w.store.Apply(&w.batch)
	if len(refused) > 0 {
		w.t.Fatalf("refused: %v", refused[0])
	}
	w.batch.Reset()
	return w.store.View(), delta
}

// next applies a batch of 1 to 200 events.
func (w *world) next() (graphstore.View, *graphstore.Delta) {
	for range 1 + int(math.Exp(w.r.Float64()*math.Log(200))) {
		w.step()
	}
	return w.apply()
}

// moves returns some joins and leaves. Now and then everyone leaves.
func (w *world) moves(view graphstore.View) []SourceChange {
	var changes []SourceChange
	move := func(v Vertex, change float64) {
		changes = append(changes, SourceChange{v, change})
		if w.sources[v] += change; w.sources[v] == 0 {
			delete(w.sources, v)
		}
	}
	if view.Vertices() == 0 {
		return nil
	}
	if w.r.IntN(40) == 0 {
		for v := range view.Vertices() {
			if m := w.sources[Vertex(v)]; m > 0 {
				move(Vertex(v), -m)
			}
		}
		return changes
	}
	for range w.r.IntN(4) {
		v := Vertex(w.r.IntN(view.Vertices()))
		switch m := w.sources[v]; {
		case m > 0 && w.r.IntN(2) == 0:
			move(v, -m)
		default:
			move(v, float64(1+w.r.IntN(3)))
		}
	}
	return changes
}

// system returns the matrix D - (1-a) A of the view.
func system(view graphstore.View, alpha float64) *mat.Dense {
	n := view.Vertices()
	m := mat.NewDense(n, n, nil)
	for v := range n {
		m.Set(v, v, view.Degree(Vertex(v))+alpha)
		weights := view.Weights(Vertex(v))
		for i, u := range view.Neighbors(Vertex(v)) {
			w := 1.0
			if weights != nil {
				w = weights[i]
			}
			m.Set(v, int(u), -(1-alpha)*w)
		}
	}
	return m
}

// dense returns the exact mass of the source by Gaussian elimination.
func dense(t testing.TB, view graphstore.View, alpha float64, source []float64) []float64 {
	n := view.Vertices()
	b := mat.NewVecDense(n, nil)
	for v := range n {
		b.SetVec(v, alpha*source[v])
	}
	var z mat.VecDense
	if err := z.SolveVec(system(view, alpha), b); err != nil {
		t.Fatal(err)
	}
	a := make([]float64, n)
	for v := range n {
		a[v] = z.AtVec(v) * (view.Degree(Vertex(v)) + 1)
	}
	return a
}

// iterated returns the exact mass by walking until nothing is left to walk.
func iterated(view graphstore.View, alpha float64, source []float64) []float64 {
	n := view.Vertices()
	walkers, next, a := make([]float64, n), make([]float64, n), make([]float64, n)
	copy(walkers, source)
	for left := 1.0; left > 1e-17; left *= 1 - alpha {
		clear(next)
		for i, x := range walkers {
			v := Vertex(i)
			a[v] += alpha * x
			x *= (1 - alpha) / (view.Degree(v) + 1)
			next[v] += x
			weights := view.Weights(v)
			for j, u := range view.Neighbors(v) {
				if weights == nil {
					next[u] += x
				} else {
					next[u] += x * weights[j]
				}
			}
		}
		walkers, next = next, walkers
	}
	return a
}

func masses(f *Field) []float64 {
	a := make([]float64, len(f.z))
	for v := range a {
		a[v] = f.Mass(Vertex(v))
	}
	return a
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += math.Abs(a[i] - b[i])
	}
	return sum
}

func total(a []float64) float64 {
	sum := 0.0
	for _, x := range a {
		sum += x
	}
	return sum
}

func newField(t testing.TB, alpha, tolerance float64) *Field {
	f, err := NewField(Config{Alpha: alpha, Tolerance: tolerance})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
