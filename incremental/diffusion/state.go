package diffusion

import (
	"fmt"
	"slices"

	"gqlstream/graphstore"
)

// A restart could compute the residuals again from z and the graph, with half the bytes. But those
// residuals differ from the stored ones by rounding errors, and then other vertices may be pushed
// next: the restored field would be as accurate and not equal.

// State is the state of a field, as a row of a table: everything that a later Update depends on,
// residuals included, so that a restored field continues with the same bits. It has neither the
// degrees, which are in the graph, nor the vertices that the last call touched.
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

// RestoreField makes a field from a state and the view of its graph at that time, and takes over
// the state's vectors. The tolerance is that of the state; alpha must equal that of the state.
func RestoreField(alpha float64, view graphstore.View, s State) (*Field, error) {
	f, err := NewField(Config{Alpha: alpha, Tolerance: s.Tolerance})
	if err != nil {
		return nil, err
	}
	n := view.Vertices()
	switch {
	case f.keep != s.Keep:
		return nil, fmt.Errorf("restore field: alpha was %v, is %v", 1-s.Keep, 1-f.keep)
	case !(s.Lift >= 1 && s.Lift <= liftMax):
		return nil, fmt.Errorf("restore field: bar at %v of the least, want 1 to "+
			"%v", s.Lift, liftMax)
	case len(s.Z) != n || len(s.R) != n || len(s.Sources) != len(s.Multiplicities):
		return nil,
			fmt.Errorf("restore field: %d values, %d residuals and %d sources with %d "+
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
			return nil, fmt.Errorf("restore field: source at vertex %d of %d", v, n)
		}
		f.source[v] = s.Multiplicities[i]
	}
	f.sources, f.sourceSum, f.degreeSum, f.stale = len(s.Sources), s.SourceSum, s.DegreeSum, s.Stale
	f.residual, f.signed, f.rounding, f.floor = s.Residual, s.Signed, s.Rounding, s.Floor
	f.lift, f.work = s.Lift, s.Work
	return f, nil
}
