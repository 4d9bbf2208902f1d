package diffusion

import (
	"fmt"
	"slices"

	"gqlstream/graphstore"
)

// Residuals could be computed anew from z and the graph at a restart, at half the bytes. But
// the residual by definition differs from the one that was kept by what was rounded on the
// way, and with it the vertex that is pushed next: the restored field would be as good as
// the other and not the same.

// State is all of a field that a later Update depends on, residuals included, as a row of a
// table, so that a restored field goes on with the same bits. Degrees are not in it, the graph
// has them; nor is what the last call touched.
type State struct {
	Tolerance, Keep, SourceSum, DegreeSum   float64
	Residual, Signed, Rounding, Floor, Lift float64
	Stale                                   bool
	Work
	Z, R           []float64 // n: solution and residual
	Sources        []Vertex  // vertices with a source
	Multiplicities []float64 // of these
}

// State returns a copy of the field's state: 16 bytes a vertex and 12 a source.
func (f *Field) State() State {
	s := State{
		Tolerance: f.config.Tolerance, Keep: f.keep, SourceSum: f.sourceSum, DegreeSum: f.degreeSum,
		Residual: f.residual, Signed: f.signed, Rounding: f.rounding, Floor: f.floor, Lift: f.lift,
		Stale: f.stale, Work: f.work, Z: slices.Clone(f.z), R: slices.Clone(f.r),
	}
	for v, m := range f.source {
		if m != 0 {
			s.Sources, s.Multiplicities = append(s.Sources, Vertex(v)), append(s.Multiplicities, m)
		}
	}
	return s
}

// RestoreField makes the field of a state whose graph, at that time, is view, and keeps the
// state's vectors. The tolerance is that of the state; alpha must be.
func RestoreField(alpha float64, view graphstore.View, s State) (*Field, error) {
	f, err := NewField(Config{Alpha: alpha, Tolerance: s.Tolerance})
	if err != nil {
		return nil, err
	}
	n := view.Vertices()
	switch {
	case f.keep != s.Keep:
		return nil, fmt.Errorf("diffusion: restore field: alpha was %v, is %v", 1-s.Keep, 1-f.keep)
	case !(s.Lift >= 1 && s.Lift <= liftMax):
		return nil, fmt.Errorf("diffusion: restore field: bar at %v of the least, want 1 to "+
			"%v", s.Lift, liftMax)
	case len(s.Z) != n || len(s.R) != n || len(s.Sources) != len(s.Multiplicities):
		return nil,
			fmt.Errorf("diffusion: restore field: %d values, %d residuals and %d sources with %d "+
				"multiplicities; the graph has %d vertices",
				len(s.Z), len(s.R), len(s.Sources), len(s.Multiplicities), n)
	}
	f.grow(n)
	f.z, f.r = s.Z, s.R
	for v := range f.d {
		f.d[v] = view.Degree(Vertex(v)) + 1
	}
	for i, v := range s.Sources {
		if int(v) >= n || f.source[v] != 0 {
			return nil, fmt.Errorf("diffusion: restore field: source at vertex %d of %d", v, n)
		}
		f.source[v] = s.Multiplicities[i]
	}
	f.sources, f.sourceSum, f.degreeSum, f.stale = len(s.Sources), s.SourceSum, s.DegreeSum, s.Stale
	f.residual, f.signed, f.rounding, f.floor = s.Residual, s.Signed, s.Rounding, s.Floor
	f.lift, f.work = s.Lift, s.Work
	return f, nil
}
