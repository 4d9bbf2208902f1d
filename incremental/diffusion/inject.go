package diffusion

import (
	"fmt"
	"math"
	"slices"

	"gqlstream/graphstore"
)

// A batch of more edges than a bulkShare-th of the directed edges is cheaper to
// take in by one pass over the graph than edge by edge, which misses the cache.
const bulkShare = 32

// begin clears the list of touched vertices and extends the vectors to the view's vertices.
func (f *Field) begin(view graphstore.View, delta *graphstore.Delta) {
	f.resetTouched(view, delta, len(f.z))
	f.grow(view.Vertices())
}

// grow extends the vectors to n vertices. A new one is isolated: z = R = 0, d = 1.
func (f *Field) grow(n int) {
	if n <= len(f.z) {
		return
	}
	seen := len(f.z)
	f.z = lengthen(f.z, n)
	f.source = lengthen(f.source, n)
	f.r, f.d = lengthen(f.r, n), lengthen(f.d, n)
	for i := seen; i < n; i++ {
		f.d[i] = 1
	}
}

// lengthen returns s with zeros up to length n; repeated calls cost O(1) each.
func lengthen[T any](s []T, n int) []T {
	have := len(s)
	s = slices.Grow(s, n-have)[:n]
	clear(s[have:])
	return s
}

// addSources changes the source and, unless a rebuild will, the residual. It panics if a
// multiplicity would become negative or is not a number.
func (f *Field) addSources(changes []SourceChange) {
	for _, c := range changes {
		before := f.source[c.V]
		after := before + c.Change
		if !(after >= 0) || math.IsInf(after, 1) {
			panic(fmt.Sprintf("diffusion: multiplicity of vertex %d would be %v", c.V, after))
		}
		f.source[c.V] = after
		f.sourceSum += c.Change
		switch {
		case before == 0 && after != 0:
			f.sources++
		case before != 0 && after == 0:
			f.sources--
		}
		if !f.stale {
			f.add(c.V, f.alpha*c.Change, f.alpha*(before+after))
		}
	}
	if f.sources == 0 {
		f.sourceSum = 0
	}
}

func bulky(view graphstore.View, delta *graphstore.Delta) bool {
	return delta != nil && len(delta.Edges) > 64+(2*view.Edges()+view.Vertices())/bulkShare
}

// inject adds the effect of a batch's edges to R, for unchanged z. R is affine in the graph, so the
// order of the edges does not matter.
func (f *Field) inject(view graphstore.View, delta *graphstore.Delta) {
	for i := range delta.Edges {
		e := &delta.Edges[i]
		w := e.After - e.Before
		zu, zv := f.z[e.U], f.z[e.V]
		size := math.Abs(w) * (math.Abs(zu) + math.Abs(zv))
		f.add(e.U, -w*(zu-f.keep*zv), size)
		f.add(e.V, -w*(zv-f.keep*zu), size)
	}
	f.work.Injected += uint64(len(delta.Edges))
	for _, v := range delta.Endpoints {
		f.d[v] = view.Degree(v) + 1
		f.touch(v)
	}
}

// add changes R(v) by x, which was computed from terms of the given size.
func (f *Field) add(v Vertex, x, size float64) {
	before := f.r[v]
	r := before + x
	f.residual += math.Abs(r) - math.Abs(before)
	f.signed += x
	f.rounding += 4*size + 2*math.Abs(r) + 2*math.Abs(f.residual)
	f.r[v] = r
}

// vanish makes the field of no sources exactly zero, which it then is.
func (f *Field) vanish() {
	if f.residual == 0 && f.rounding == 0 {
		return
	}
	f.touchAll(len(f.z))
	clear(f.z)
	clear(f.r)
	f.residual, f.signed, f.rounding = 0, 0, 0
}
