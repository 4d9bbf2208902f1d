package diffusion

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// walkMatrix returns A D^-1 with a self-loop of the given weight on every vertex,
// and the identity's column where a vertex has no edges at all.
func walkMatrix(view graphstore.View, loop float64) *mat.Dense {
	n := view.Vertices()
	p := mat.NewDense(n, n, nil)
	for v := range n {
		d := view.Degree(Vertex(v)) + loop
		if d == 0 {
			p.Set(v, v, 1)
			continue
		}
		p.Set(v, v, loop/d)
		weights := view.Weights(Vertex(v))
		for i, u := range view.Neighbors(Vertex(v)) {
			w := 1.0
			if weights != nil {
				w = weights[i]
			}
			p.Set(int(u), v, w/d)
		}
	}
	return p
}

// oracleKernel evaluates the definitions of the kernels with dense matrices.
func oracleKernel(view graphstore.View, name string, source []float64, alpha float64) []float64 {
	n := len(source)
	m := mat.NewVecDense(n, append([]float64(nil), source...))
	x := mat.VecDenseCopyOf(m)
	switch name {
	case Truncated:
		walk := walkMatrix(view, 1)
		for range kernelSteps {
			var y mat.VecDense
			y.MulVec(walk, x)
			x.AddScaledVec(scaled(1-alpha, &y), alpha, m)
		}
	case Lazy:
		walk := walkMatrix(view, 0)
		for range kernelSteps {
			var y mat.VecDense
			y.MulVec(walk, x)
			x.AddScaledVec(scaled(1-alpha, &y), alpha, x)
		}
	}
	return x.RawVector().Data
}

func scaled(by float64, x *mat.VecDense) *mat.VecDense {
	x.ScaleVec(by, x)
	return x
}

// The walk kernels must equal their definitions and conserve the source's mass.
func TestWalkKernelsEqualDenseOracle(t *testing.T) {
	for seed := range uint64(40) {
		alpha, _, weighted := settings(seed)
		w := newWorld(t, seed, 60, weighted)
		view, _ := w.next()
		for range 10 {
			view, _ = w.next()
		}
		source := make([]float64, view.Vertices())
		for range 5 {
			source[w.r.IntN(len(source))] += float64(1 + w.r.IntN(3))
		}
		for _, name := range []string{Truncated, Lazy} {
			a, m := Kernel(view, name, source, alpha), total(source)
			if e := distance(a, oracleKernel(view, name, source, alpha)) / m; e > 1e-12 {
				t.Fatalf("seed %d %s: error %v", seed, name, e)
			}
			if s := total(a) / m; math.Abs(s-1) > 1e-12 {
				t.Fatalf("seed %d %s: total mass %v", seed, name, s)
			}
		}
	}
}

// A hand-made path of 13 vertices, a source at its end and one vertex apart.
func TestShortestPathCountsHops(t *testing.T) {
	w := newWorld(t, 1, 20, true)
	for v := range 13 {
		w.edge(v, v+1, 2.5)
	}
	w.edge(20, 21, 1)
	view, _ := w.apply()
	source := make([]float64, view.Vertices())
	source[0], source[2] = 1, 7
	for v, x := range Kernel(view, ShortestPath, source, AlphaDefault) {
		hops := map[int]float64{0: 0, 1: 1, 2: 0}
		h, ok := hops[v]
		if !ok {
			h = float64(v - 2)
		}
		want := math.Exp(-h)
		if h > 10 || v > 13 {
			want = 0
		}
		if x != want {
			t.Errorf("vertex %d: %v, want %v", v, x, want)
		}
	}
}

// Without a source there is no mass, but for the kernel that has no source.
func TestKernelsOfNoSource(t *testing.T) {
	w := newWorld(t, 1, 20, false)
	view, _ := w.next()
	m := make([]float64, view.Vertices())
	for _, name := range KernelNames {
		if name == PPR {
			continue
		}
		if a := Kernel(view, name, m, AlphaDefault); len(a) != len(m) ||
			(name != Constant && total(a) != 0) {
			t.Errorf("%s of no source: %v", name, a)
		}
	}
}

// The kernel of features must equal its definition, X max(0, X' m) over all, with text that is
// no feature and vertices that have none.
func TestFeaturesAreInnerProducts(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed, 60, false)
		view, _ := w.next()
		for range 10 {
			view, _ = w.next()
		}
		const keys = 5
		x := mat.NewDense(view.Vertices(), keys, nil)
		for v := range view.Vertices() {
			if view.Erased(Vertex(v)) || w.r.IntN(4) == 0 {
				continue
			}
			text := event.Value{Kind: event.StringValue, Text: "7"}
			attributes := []event.Attribute{{Key: "text", Value: text}}
			for k := range keys {
				number := event.Value{Kind: event.NumberValue, Number: w.r.NormFloat64()}
				x.Set(v, k, number.Number)
				attributes = append(
					attributes,
					event.Attribute{Key: string(rune('a' + k)), Value: number},
				)
			}
			w.batch.Vertices = append(
				w.batch.Vertices,
				event.Vertex{Vertex: view.ID(Vertex(v)), Attributes: attributes},
			)
		}
		view, _ = w.apply()
		source := make([]float64, view.Vertices())
		for range 5 {
			source[w.r.IntN(x.RawMatrix().Rows)] += float64(1 + w.r.IntN(3))
		}
		a := Kernel(view, Features, source, AlphaDefault)
		var center, want mat.VecDense
		center.MulVec(x.T(), mat.NewVecDense(len(source), source))
		want.MulVec(x, &center)
		raw, all := want.RawVector().Data, 0.0
		for v := range raw {
			raw[v] = max(raw[v], 0)
			all += raw[v]
		}
		if all == 0 {
			continue
		}
		want.ScaleVec(total(source)/all, &want)
		if e := distance(a, raw); e > 1e-12*total(source) {
			t.Fatalf("seed %d: off by %v", seed, e)
		}
	}
}
