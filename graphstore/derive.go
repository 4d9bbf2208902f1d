package graphstore

import (
	"fmt"
	"strings"
)

// DerivedPrefix begins the model versions of predictions that gqlstream makes itself. Events may
// not use it, so a version shows whether gqlstream made the prediction.
const DerivedPrefix = "gqlstream/"

// Derived is the prediction of a built-in classifier for V: K units that sum to
// event.One, or nothing when Units is nil.
type Derived struct {
	V     Vertex
	Units []uint32
}

// Derive sets or removes predictions of the version DerivedPrefix + name; vertices that
// EvidenceConfig.Except excepts get none. This is a second change
// within the step of the last Apply, and Derive returns it. list is sorted by V and not kept. A
// prediction from an event can only be replaced by another event: Derive panics if asked to change
// one, or to predict an erased vertex. The result is valid until the next Derive or Apply; the
// Delta of the last Apply stays valid as well.
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
		now := eventPrediction{units: d.Units, version: version}
		if d.Units == nil || s.except.holds(s.attributes, d.V) {
			now.units, now.version = nil, noVersion
		}
		s.labelling.setPrediction(&s.derived, &s.derivedUnits, d.V, now)
	}
	return &s.derived
}

// RollOut returns the progress of the incoming model version, and whether there is one. The view's
// other methods do not show its predictions.
func (w View) RollOut() (RollOut, bool) {
	m := &w.s.labelling.models
	return m.counts, m.incoming != noVersion
}

// ActiveVersion returns the index in Versions of the active model version of events, and whether
// there has been one.
func (w View) ActiveVersion() (uint32, bool) {
	active := w.s.labelling.models.active
	return active, active != noVersion
}

// DerivedVersion returns the index in Versions of the built-in classifier of that name, and whether
// it has made predictions.
func (w View) DerivedVersion(name string) (uint32, bool) {
	version, known := w.s.labelling.versions.index[DerivedPrefix+name]
	return version, known
}

// IsDerived reports whether a model version belongs to a built-in classifier. Events may not use
// such versions.
func IsDerived(version string) bool { return strings.HasPrefix(version, DerivedPrefix) }
