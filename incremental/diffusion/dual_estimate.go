package diffusion

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/parallel"
	"gqlstream/ingest/event"
)

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
// community, and of how many sources, with their multiplicities, any function has reached.
func (g *Dual) Estimate(
	id graphstore.Community,
	view graphstore.View,
) (sums []float64, sources float64) {
	e := g.known(id)
	if e == nil {
		e = &newEstimates(g.l, 1)[0]
		view.ForMembers(id, func(v Vertex, multiplicity uint32) {
			if view.Label(v).Class == event.NoClass {
				g.add(e, v, float64(multiplicity))
			}
		})
	}
	return g.corrected(e), e.sources
}

// known returns the estimate of a community from its sums, nil without sums.
func (g *Dual) known(id graphstore.Community) *estimate {
	if at, kept := slices.BinarySearch(g.sums.crowds, id); kept && g.sums.current {
		return &g.sums.each[at]
	}
	if int(id) < len(g.gathered) {
		return g.gathered[id]
	}
	return nil
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

// gatherShare is the share of the vertices that as many members must be for one pass over all to
// pay.
const gatherShare = 0.25

// Gather computes the sums for Estimate of communities with many members, until the duals change.
// Estimate then returns the same result at almost no cost. One pass in the order of the vertices
// costs a fraction of reading one community after the other, because members' rows are far apart.
func Gather(duals []*Dual, communities []graphstore.Community, view graphstore.View) {
	communities = slices.DeleteFunc(
		slices.Clone(communities),
		func(id graphstore.Community) bool { return duals[0].known(id) != nil },
	)
	members := 0
	for _, id := range communities {
		vertices, _ := view.Members(id)
		members += len(vertices)
	}
	if float64(members) < gatherShare*float64(view.Vertices()) {
		return
	}
	parallel.Each(len(duals), func(i, _ int) { duals[i].gather(communities, view) })
}

func (g *Dual) gather(communities []graphstore.Community, view graphstore.View) {
	g.gathered = make([]*estimate, view.Communities())
	list := newEstimates(g.l, len(communities))
	for i, id := range communities {
		g.gathered[id] = &list[i]
	}
	for v := range Vertex(len(g.rows)) {
		if view.Label(v).Class != event.NoClass {
			continue
		}
		for _, m := range view.MemberOf(v) {
			if e := g.gathered[m.Community]; e != nil {
				g.add(e, v, float64(m.Multiplicity))
			}
		}
	}
}

// SumResiduals prepares Estimate until the next Update or Solve. It maintains sums over the sources
// of these communities, which must be sorted and should have many members. The cost of their
// Estimate then depends on pushes and changes, not on members.
func (g *Dual) SumResiduals(view graphstore.View, crowds []graphstore.Community) {
	s := &g.sums
	if !s.current || !slices.Equal(s.crowds, crowds) {
		s.recount(g, view, crowds)
	}
	clear(g.common)
	most := g.Certificate()
	for i, d := range s.degrees {
		if d > 0 {
			g.common[i] = (1 - nearShare) * max(-most, min(s.residuals[i]/(g.alpha*d), most))
		}
	}
}

// ForgetSums makes the next SumResiduals count everything again, as for a restored dual.
func (g *Dual) ForgetSums() { g.sums.current = false }
