package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// Every edge that a growing graph gains makes the field sink a little everywhere, and that even
// sink is what push does worst: it is the mode that a push damps least. But adding a constant c to
// z on a set of vertices without edges to the rest changes R by exactly -a c d there. So once the
// sum of R over that set has grown to shiftShare of what the tolerance allows, the c that makes it
// zero is added, in O(n). On graphs that mix well this saves most of the pushes: they only have to
// spread what a vertex holds, and the shift takes it all. Where it would not lower the sum of |R|
// (what is left is local), the try is not taken.
//
// The graph's own vertices are not always such a set: a community may live in one
// of several components. reach keeps one.
const (
	shiftShare = 0.1  // of Tolerance * a * M, in the absolute sum of R
	shiftGain  = 0.05 // least fall of sum |R|, as a share of the absolute sum of R
	shiftEvery = 4    // neighbours visited for each vertex, between two tries
)

// reach is a set of vertices that holds all sources and has no edge to the rest. It is found at the
// first shift and then only grows, with edges and sources; a component that loses its last source
// stays, which costs a little and harms nothing.
type reach struct {
	set   bitmap
	known bool
	stack []Vertex
}

// effort measures work in neighbours visited, so that shifts and tries at it, at
// O(n) each, stay a small part of the whole.
func (w *Work) effort() uint64 { return w.Traversals + pushCost*w.Pushes + 16*w.injected }

// shiftIfDue adds the constant that makes R sum to zero, if that lowers sum |R| enough.
func (f *Field) shiftIfDue(view graphstore.View) {
	due := f.work.effort()-f.work.shiftedAt > shiftEvery*uint64(len(f.z))
	if !due || math.Abs(f.signed) <= f.allowed(shiftShare) {
		return
	}
	f.work.shiftedAt = f.work.effort()
	if !f.reach.known {
		f.findReach(view)
	}
	signed, size, degrees := f.reachSums()
	c := signed / (f.alpha * degrees)
	if f.residualAfter(c) > size-shiftGain*math.Abs(signed) {
		return
	}
	f.addConstant(c)
	f.work.Shifts++
}

// reachSums returns the sums of R, of |R| and of d over the reach.
func (f *Field) reachSums() (signed, size, degrees float64) {
	for v := range f.r {
		if f.reach.set.has(Vertex(v)) {
			signed += f.r[v]
			size += math.Abs(f.r[v])
			degrees += f.d[v]
		}
	}
	return signed, size, degrees
}

// residualAfter returns the sum of |R| that addConstant(c) would leave.
func (f *Field) residualAfter(c float64) float64 {
	sum := 0.0
	for v := range f.r {
		if f.reach.set.has(Vertex(v)) {
			sum += math.Abs(f.r[v] - c*f.alpha*f.d[v])
		}
	}
	return sum
}

func (f *Field) addConstant(c float64) {
	f.residual, f.signed, f.blank = 0, 0, false
	mass, step := 0.0, math.Abs(c)
	for v := range f.z {
		if !f.reach.set.has(Vertex(v)) {
			continue
		}
		r, d := f.r[v]-c*f.alpha*f.d[v], f.d[v]
		f.z[v] += c
		f.r[v] = r
		f.residual += math.Abs(r)
		f.signed += r
		mass += d * (math.Abs(f.z[v]) + step)
		f.touch(Vertex(v))
	}
	f.rounding += 4*mass + float64(len(f.z)+4)*f.residual
}

// find floods the graph from every source, and from what earlier sources left.
func (f *Field) findReach(view graphstore.View) {
	r := &f.reach
	clear(r.set)
	r.known = true
	for v, m := range f.source {
		if m != 0 || f.z[v] != 0 || f.r[v] != 0 {
			r.include(view, Vertex(v))
		}
	}
}

// join is told of a new edge.
func (r *reach) join(view graphstore.View, u, v Vertex) {
	if r.known && r.set.has(u) != r.set.has(v) {
		r.include(view, u)
		r.include(view, v)
	}
}

// include adds v and all that is connected to it.
func (r *reach) include(view graphstore.View, v Vertex) {
	if !r.known || !r.set.add(v) {
		return
	}
	r.stack = append(r.stack[:0], v)
	for len(r.stack) > 0 {
		v := r.stack[len(r.stack)-1]
		r.stack = r.stack[:len(r.stack)-1]
		for _, u := range view.Neighbors(v) {
			if r.set.add(u) {
				r.stack = append(r.stack, u)
			}
		}
	}
}
