package diffusion

import (
	"errors"
	"fmt"

	"gqlstream/graphstore"
)

// DualState is a part of the state of a dual, as a row of a table: everything that a later Update
// depends on, so that a restored dual continues with the same bits. Each row has the next vertices;
// the first row also has the values of the dual as a whole. 16 L + 8 bytes a vertex, and 4 + 8 L
// for every vertex with a value.
type DualState struct {
	Tolerance, Keep, Peak, DegreeSum float64
	Bound, Rounding, Floor           float64
	Stale                            bool
	Work
	// largest degree of each vertex since its residual was last computed from y
	Most      []float64
	Y, R      []float64 // L of each vertex: values and residuals
	Valued    []Vertex  // vertices with a function
	Functions []float64 // L of each of these
}

// partNumbers is the number of values of a part, far below the limit of a column.
const partNumbers = 1 << 22

// State returns the parts of the state, which share memory with the dual: they hold until the next
// Update or Follow.
func (g *Dual) State() []DualState { return g.parts(max(1, partNumbers/g.l)) }

// parts returns the state in parts of each vertices.
func (g *Dual) parts(each int) []DualState {
	parts := []DualState{{
		Tolerance: g.config.Tolerance, Keep: g.keep, Peak: g.peak, DegreeSum: g.degreeSum,
		Bound:    g.bound,
		Rounding: g.rounding, Floor: g.floor, Stale: g.stale, Work: g.work,
	}}
	for from := 0; from < len(g.rows); from += each {
		if from > 0 {
			parts = append(parts, DualState{})
		}
		p, end := &parts[len(parts)-1], min(from+each, len(g.rows))
		p.Most = g.most[from:end]
		p.Y = g.y[from*g.l : end*g.l]
		p.R = make([]float64, 0, (end-from)*g.l)
		for v := Vertex(from); v < Vertex(end); v++ {
			_, r := g.residuals(v)
			p.R = append(p.R, r...)
			if f := g.Function(v); f != nil {
				p.Valued, p.Functions = append(p.Valued, v), append(p.Functions, f...)
			}
		}
	}
	return parts
}

// RestoreDual makes a dual from the parts of its state and the view of its graph at that time. The
// tolerance is that of the state; alpha and the number of functions must equal those of the state.
func RestoreDual(config Config, view graphstore.View, parts []DualState) (*Dual, error) {
	if len(parts) == 0 {
		return nil, errors.New("restore dual: no state")
	}
	s := &parts[0]
	config.Tolerance = s.Tolerance
	g, err := NewDual(config)
	if err != nil {
		return nil, err
	}
	if g.keep != s.Keep {
		return nil, fmt.Errorf("restore dual: alpha was %v, is %v", 1-s.Keep, 1-g.keep)
	}
	g.peak = s.Peak
	g.degreeSum = s.DegreeSum
	g.bound = s.Bound
	g.rounding = s.Rounding
	g.floor = s.Floor
	g.stale, g.work = s.Stale, s.Work
	g.grow(view.Vertices())
	at := 0
	for i := range parts {
		if !g.restorePart(view, at, &parts[i]) {
			return nil, fmt.Errorf("restore dual: part %d does not fit %d functions "+
				"of %d vertices", i, g.l, view.Vertices())
		}
		at += len(parts[i].Most)
	}
	if at != len(g.rows) {
		return nil, fmt.Errorf("restore dual: %d vertices, the graph has "+
			"%d", at, len(g.rows))
	}
	g.scan = true // the queue is no state
	return g, nil
}

// restorePart copies the vertices of a part, the first of them at, and reports whether the part is
// valid.
func (g *Dual) restorePart(view graphstore.View, at int, p *DualState) bool {
	n, l := len(p.Most), g.l
	if at+n > len(g.rows) || len(p.Y) != n*l || len(p.R) != n*l ||
		len(p.Functions) != len(p.Valued)*l {
		return false
	}
	copy(g.most[at:], p.Most)
	copy(g.y[at*l:], p.Y)
	for i := range n {
		v := Vertex(at + i)
		g.cells[int(v)*g.stride] = view.Degree(v) + 1
		_, r := g.residuals(v)
		copy(r, p.R[i*l:])
	}
	for _, v := range p.Valued {
		if int(v) >= len(g.rows) || g.rows[v] != 0 {
			return false
		}
		g.valued = append(g.valued, v)
		g.rows[v] = uint32(len(g.valued))
		g.f = append(g.f, p.Functions[:l]...)
		p.Functions = p.Functions[l:]
	}
	return true
}
