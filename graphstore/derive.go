package graphstore

import (
	"fmt"
	"strings"
)

// DerivedPrefix begins the model versions of the predictions that gqlstream makes
// itself. No event may use it, so the version of a prediction says who made it.
const DerivedPrefix = "gqlstream/"

// Derived is the prediction of a built-in classifier for V: K units that sum to
// event.One, or nothing when Units is nil.
type Derived struct {
	V     Vertex
	Units []uint32
}

// Derive sets or removes predictions of the version DerivedPrefix + name, which is
// a second change within the step of the last Apply, and returns it. list is
// sorted by V and not kept. A prediction that an event asserted stands until
// another event replaces it: Derive panics if asked to change one, or to predict
// an erased vertex. The result is valid until the next Derive or Apply; the Delta
// of the last Apply stays valid beside it.
func (s *Store) Derive(list []Derived, name string) *Delta {
	version, known := s.labelling.versions.index[DerivedPrefix+name]
	if !known && len(list) > 0 { // not counted against versionsMax: there are few
		version = uint32(len(s.labelling.versions.names))
		s.labelling.versions.add(DerivedPrefix + name)
	}
	s.derived = Delta{
		Position: s.step.delta.Position, Time: s.step.delta.Time,
		FirstVertex: Vertex(s.ids.len()), FirstCommunity: Community(len(s.members.communities)),
		Predictions: s.derived.Predictions[:0], Evidence: s.derived.Evidence[:0],
	}
	s.derivedUnits = s.derivedUnits[:0]
	for _, d := range list {
		if held := s.labelling.version.data[d.V]; held != noVersion && held != version ||
			s.ids.Erased(d.V) {
			panic(fmt.Sprintf("graphstore: vertex %d is not a built-in classifier's to predict",
				d.V))
		}
		now := said{units: d.Units, version: version}
		if d.Units == nil {
			now.version = noVersion
		}
		s.labelling.setPrediction(&s.derived, &s.derivedUnits, d.V, now)
	}
	return &s.derived
}

// RollOut returns the progress of the incoming model version, and whether there is one. Its
// predictions are in no other answer of the view.
func (w View) RollOut() (RollOut, bool) {
	m := &w.s.labelling.models
	return m.counts, m.incoming != noVersion
}

// ActiveVersion returns the index in Versions of the predictions that events
// asserted, and whether there ever was one.
func (w View) ActiveVersion() (uint32, bool) {
	active := w.s.labelling.models.active
	return active, active != noVersion
}

// DerivedVersion returns the index in Versions of the predictions that the built-in
// classifier of that name made, and whether it has made any.
func (w View) DerivedVersion(name string) (uint32, bool) {
	version, known := w.s.labelling.versions.index[DerivedPrefix+name]
	return version, known
}

// IsDerived reports whether a model version is that of a built-in classifier, which
// no event may use.
func IsDerived(version string) bool { return strings.HasPrefix(version, DerivedPrefix) }
