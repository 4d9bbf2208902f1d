package classifier

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// nobody is no vertex.
const nobody = ^Vertex(0)

// walksMeet returns, for every vertex and class, the probability that a walk from the
// vertex stops at a source of the class: the dense solution of (D - (1-a) A) y = a D f,
// where f marks the sources of the class. The vertex "without" is no source, whatever its
// label.
func walksMeet(t *testing.T, view graphstore.View, classes int, without Vertex) *mat.Dense {
	t.Helper()
	n := view.Vertices()
	system, marked := mat.NewDense(n, n, nil), mat.NewDense(n, classes, nil)
	for v := range n {
		degree := view.Degree(Vertex(v)) + 1
		system.Set(v, v, degree-(1-Alpha))
		neighbours(view, Vertex(v), func(u Vertex, weight float64) {
			system.Set(v, int(u), -(1-Alpha)*weight)
		})
		if c := sourceClass(view, Vertex(v)); c != event.NoClass && Vertex(v) != without {
			marked.Set(v, int(c), Alpha*degree)
		}
	}
	var y mat.Dense
	if err := y.Solve(system, marked); err != nil {
		t.Fatal(err)
	}
	return &y
}

// shareError bounds the error of a share: both sums that it is made of are off by
// no more than Tolerance for each class, and they are Prior or more.
func shareError(classes int) float64 {
	return 2 * float64(classes) * Tolerance / Prior
}

// At every emission of a random history the predictions must be the shares of a
// dense solution within the lag and the error of the field, and there must be one
// exactly where no event predicts and the vertex is no source.
func TestDiffusionEqualsADenseSolution(t *testing.T) {
	compared := 0
	for seed := range uint64(80) {
		w := newWorld(t, seed)
		k := w.stream.Config.Classes
		d := New(k, w.store.View())
		for i := range 20 {
			view, delta := w.next()
			d.Update(view, delta)
			if i%3 > 0 || view.Vertices() == 0 {
				continue // no emission: predictions may be behind
			}
			w.store.Derive(d.Derive(view), Name)
			y := walksMeet(t, view, k, nobody)
			for v := range Vertex(view.Vertices()) {
				if !view.Erased(v) && !outside(view, v) {
					compared += checkShares(
						t, seed, view, v, y.RawRowView(int(v)),
						sourceClass(view, v) != event.NoClass,
					)
				}
			}
		}
	}
	if compared < 3_000 {
		t.Fatalf("only %d predictions were compared", compared)
	}
}

// checkShares compares the prediction of v with the labels that walks from it meet, and
// returns the number of compared predictions.
func checkShares(
	t *testing.T, seed uint64, view graphstore.View, v Vertex, y []float64, source bool,
) int {
	t.Helper()
	got, sum := view.Prediction(v), 0.0
	for _, meet := range y {
		sum += meet
	}
	if source != (got == nil) {
		t.Fatalf("seed %d: vertex %d, a source: %t, is predicted %v", seed, v, source, got)
	}
	if source {
		return 0
	}
	for i, meet := range y {
		share, want := float64(got[i])/event.One, (meet+Prior/float64(len(y)))/(sum+Prior)
		if off := math.Abs(share - want); off > Lag+shareError(len(y))+2.0/event.One {
			t.Fatalf(
				"seed %d: vertex %d class %d: predicted %v, a dense solution gives %v", seed, v, i,
				share, want,
			)
		}
	}
	return 1
}

// The prediction of a labelled vertex must equal its prediction in a graph without its
// label: a label does not confirm itself.
func TestDiffusionLeavesTheOwnLabelOut(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		w := newWorld(t, seed)
		k := w.stream.Config.Classes
		d := New(k, w.store.View())
		var view graphstore.View
		for range 12 {
			var delta *graphstore.Delta
			view, delta = w.next()
			d.Update(view, delta)
		}
		w.store.Derive(d.Derive(view), Name)
		for v := range Vertex(view.Vertices()) {
			if view.Label(v).Class == event.NoClass || view.Prediction(v) == nil ||
				outside(view, v) {
				continue
			}
			y := walksMeet(t, view, k, v)
			compared += checkShares(t, seed, view, v, y.RawRowView(int(v)), false)
		}
	}
	if compared < 40 {
		t.Fatalf("only %d labelled vertices were compared", compared)
	}
}

// A classifier that starts in the middle of a history must predict the same as one from its
// beginning, within the lag and the error of both fields.
func TestDiffusionFromNothingAgrees(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(t, seed)
		k := w.stream.Config.Classes
		followed := New(k, w.store.View())
		var view graphstore.View
		for range 15 {
			var delta *graphstore.Delta
			view, delta = w.next()
			followed.Update(view, delta)
		}
		anew := New(k, view)
		for v := range Vertex(view.Vertices()) {
			for i, y := range anew.dual.Values(v) {
				if off := math.Abs(y - followed.dual.Values(v)[i]); off > 2*Tolerance {
					t.Fatalf(
						"seed %d: vertex %d class %d: %v, from nothing %v", seed, v, i,
						followed.dual.Values(v)[i], y,
					)
				}
			}
		}
	}
}
