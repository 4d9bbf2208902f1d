package diffusion

import "math"

// Every new edge of a growing graph lowers the field a little everywhere, and pushes reduce this
// uniform error least. But adding a constant c to z changes R by exactly -a c d, since every row of
// (D - (1-a) A) sums to a d. So once the sum of R has grown to shiftShare of the tolerance, the
// field adds the c that makes the sum zero, in O(n). On graphs that mix well this saves most of the
// pushes. It is not added if it would not lower the sum of |R|, because the residuals are local or
// the source cannot reach much of the graph.
//
// At vertices that no walk from the source reaches, the shift creates residuals, and pushes remove
// them again. To keep the component of the source instead would cost a set of vertices, which
// changes with every edge, and help only graphs that have no component of most of their edges.
const (
	shiftShare = 0.1  // of Tolerance * a * M, in the absolute sum of R
	shiftGain  = 0.05 // least fall of sum |R|, as a share of the absolute sum of R
	shiftEvery = 4    // neighbours visited for each vertex, between two tries
)

// effort measures work in neighbours visited, so that shifts and tries at it, at
// O(n) each, stay a small part of the whole.
func (w *Work) effort() uint64 { return w.Traversals + pushCost*w.Pushes + 16*w.Injected }

// shiftIfDue adds the constant that makes R sum to zero, if that lowers sum |R| enough.
func (f *Field) shiftIfDue() {
	due := f.work.effort()-f.work.ShiftedAt > shiftEvery*uint64(len(f.z))
	if !due || math.Abs(f.signed) <= f.allowed(shiftShare) {
		return
	}
	f.work.ShiftedAt = f.work.effort()
	signed, size, degrees := f.sums()
	c := signed / (f.alpha * degrees)
	if f.residualAfter(c) > size-shiftGain*math.Abs(signed) {
		return
	}
	f.addConstant(c)
	f.work.Shifts++
}

// sums returns the sums of R, of |R| and of d.
func (f *Field) sums() (signed, size, degrees float64) {
	for v, r := range f.r {
		signed += r
		size += math.Abs(r)
		degrees += f.d[v]
	}
	return signed, size, degrees
}

// residualAfter returns the sum of |R| that addConstant(c) would leave.
func (f *Field) residualAfter(c float64) float64 {
	sum := 0.0
	for v, r := range f.r {
		sum += math.Abs(r - c*f.alpha*f.d[v])
	}
	return sum
}

func (f *Field) addConstant(c float64) {
	f.residual, f.signed = 0, 0
	mass, step := 0.0, math.Abs(c)
	for v := range f.z {
		d := f.d[v]
		r := f.r[v] - c*f.alpha*d
		f.z[v] += c
		f.r[v] = r
		f.residual += math.Abs(r)
		f.signed += r
		mass += d * (math.Abs(f.z[v]) + step)
	}
	f.touchAll(len(f.z))
	f.rounding += 4*mass + float64(len(f.z)+4)*f.residual
}
