package diffusion

import "gqlstream/graphstore"

// nearShare is the part of a vertex's excess residual that is assumed to remain near the vertex.
// Values from 0.2 to 0.4 give similar errors.
const nearShare = 0.3

// estimate is a sum of m y(v), corrected for the residuals to first order. It is several times
// nearer to the truth than a sum of Values, because their errors have one sign around a label. A
// constant c added to y takes a c d(v) from every R(v), so the common part of the residuals moves y
// by c = sum R / (a sum d). The degrees are summed over the vertices that f has reached, where y(v)
// is not zero; pushes to other vertices carry less than the tolerance. c is at most the
// certificate. Of the remaining residual, R(v) / (a d(v)) - c, the part nearShare stays at v. The
// error of one value is at most twice the certificate.
type estimate struct {
	near    []float64 // L: sum of m (y + nearShare R / (a d))
	some    []float64 // L: sum of m where the function has reached v and others have not
	whole   float64   // where all have
	sources float64   // where any has
}

// add counts m times y(v).
func (g *Dual) add(e *estimate, v Vertex, m float64) {
	d, r := g.residuals(v)
	near, y, reached := nearShare/(g.alpha*d), g.Values(v), 0
	y, dst := y[:len(r)], e.near[:len(r)]
	for i, r := range r {
		dst[i] += float64(m * (y[i] + float64(near*r)))
		if y[i] != 0 {
			reached++
		}
	}
	switch {
	case reached == 0:
		return
	case reached == len(r):
		e.whole += m
	default:
		for i, y := range y {
			if y != 0 {
				e.some[i] += m
			}
		}
	}
	e.sources += m
}

// Estimate returns for every function the estimate of the sum of m y over the sources of a
// community, and of how many sources, with their multiplicities, any function has reached. It reads
// the sums that Prepare made valid, and no member.
func (g *Dual) Estimate(id graphstore.Community) (sums []float64, sources float64) {
	if !g.sums.current {
		panic("diffusion: Estimate before Prepare")
	}
	e := &g.sums.each[id]
	return g.corrected(e), e.sources
}

// corrected returns the values of an estimate.
func (g *Dual) corrected(e *estimate) []float64 {
	sums := make([]float64, g.l)
	for i, x := range e.near {
		sums[i] = x + float64(g.common[i]*(e.some[i]+e.whole))
	}
	return sums
}

func newEstimates(functions, n int) []estimate {
	list, memory := make([]estimate, n), make([]float64, 2*n*functions)
	for i := range list {
		at := memory[2*i*functions:][:2*functions]
		list[i].near, list[i].some = at[:functions:functions], at[functions:]
	}
	return list
}

// Prepare makes Estimate valid until the next Update or Solve. The cost of Estimate depends on
// pushes and changes, not on members.
func (g *Dual) Prepare(view graphstore.View) {
	s := &g.sums
	if s.current {
		s.extend(g, view)
	} else {
		s.recount(g, view)
	}
	clear(g.common)
	most := g.Certificate()
	for i, d := range s.degrees {
		if d > 0 {
			g.common[i] = (1 - nearShare) * max(-most, min(s.residuals[i]/(g.alpha*d), most))
		}
	}
}

// ForgetSums makes the next Prepare count everything again, as for a restored dual.
func (g *Dual) ForgetSums() { g.sums.current = false }
