package graphstore

import (
	"fmt"
	"slices"

	"gqlstream/ingest/event"
)

// Check recomputes every invariant from nothing and returns the first that does
// not hold. It costs several passes over the store and memory for a second copy
// of the adjacency.
func (s *Store) Check() error {
	n := len(s.classes.data)
	for _, have := range [...]int{
		len(s.ids.entries.data), len(s.adj.runs.data), len(s.roles.data), len(s.version.data),
		len(s.units.data) / s.config.Classes, len(s.members.runs.data),
	} {
		if have != n {
			return fmt.Errorf("graphstore: columns of %d and %d vertices", have, n)
		}
	}
	if have := len(s.times.data); s.config.LabelTimes && have != n {
		return fmt.Errorf("graphstore: times of %d labels, %d vertices", have, n)
	}
	for _, part := range [...]struct {
		name  string
		check func() error
	}{
		{"interner", s.ids.check},
		{"adjacency", s.adj.check},
		{"columns", s.checkColumns},
		{"models", s.checkModels},
		{"attributes", s.attributes.check},
		{"members", s.members.check},
		{"rules", s.checkRules},
		{"expiry", s.checkExpiry},
		{"erasures", s.checkErased},
	} {
		if err := part.check(); err != nil {
			return fmt.Errorf("graphstore: %s: %w", part.name, err)
		}
	}
	return nil
}

func (t *interner) check() error {
	filled, live, nameBytes := 0, 0, 0
	for _, x := range t.slots.data {
		if x != 0 {
			filled++
		}
	}
	var gone []uint32
	for v := range t.entries.data {
		e := &t.entries.data[v]
		if e.size == erasedID {
			gone = append(gone, uint32(v))
			continue
		}
		live++
		if e.size > 0 {
			nameBytes += int(e.size)
		}
		id := t.id(Vertex(v))
		if found, ok := t.lookup(id); !ok || found != Vertex(v) || hashID(id) != e.hash {
			return fmt.Errorf("vertex %d is not found by its identity %v", v, id)
		}
	}
	if filled != live || nameBytes+t.dead != len(t.bytes.data) {
		return fmt.Errorf("%d slots for %d identities, %d+%d bytes of %d",
			filled, live, nameBytes, t.dead, len(t.bytes.data))
	}
	if free := slices.Sorted(slices.Values(t.free)); !slices.Equal(free, gone) {
		return fmt.Errorf("free indices %v, erased %v", free, gone)
	}
	return nil
}

func (s *Store) checkColumns() error {
	for v := range Vertex(len(s.classes.data)) {
		label := s.View().Label(v)
		if label.Class < event.NoClass || int(label.Class) >= s.config.Classes || label.Role > event.Train {
			return fmt.Errorf("vertex %d has label %+v", v, label)
		}
		if at := s.View().LabelTime(v); at != 0 && label.Class == event.NoClass {
			return fmt.Errorf("vertex %d has no label, of the time %d", v, at)
		}
		sum := uint64(0)
		for _, unit := range s.units.data[int(v)*s.config.Classes:][:s.config.Classes] {
			sum += uint64(unit)
		}
		switch version := s.version.data[v]; {
		case version == noVersion && sum != 0, version != noVersion && sum != event.One:
			return fmt.Errorf("units of vertex %d sum to %d", v, sum)
		case version != noVersion && int(version) >= len(s.versions.names):
			return fmt.Errorf("vertex %d has version %d of %d", v, version, len(s.versions.names))
		}
	}
	return nil
}

func (a *attributes) check() error {
	uses := make([]uint32, len(a.values))
	for _, column := range a.columns {
		for v, x := range column.data {
			if int(x) > len(a.values) {
				return fmt.Errorf("vertex %d has value %d of %d", v, x, len(a.values))
			}
			if x != 0 {
				uses[x-1]++
			}
		}
	}
	var unused []uint32
	for i, value := range a.values {
		at, known := a.byValue[value]
		if uses[i] != a.uses[i] || (uses[i] > 0) != (known && at == uint32(i)) {
			return fmt.Errorf("value %v has %d uses, counted %d", value, uses[i], a.uses[i])
		}
		if uses[i] == 0 {
			unused = append(unused, uint32(i))
		}
	}
	if free := slices.Sorted(slices.Values(a.free)); !slices.Equal(free, unused) {
		return fmt.Errorf("free values %v, unused %v", free, unused)
	}
	if len(a.byValue) != len(a.values)-len(unused) || len(a.index) != len(a.keys) {
		return fmt.Errorf("%d values by value, %d keys by name", len(a.byValue), len(a.index))
	}
	return nil
}

func (s *Store) checkExpiry() error {
	edge := func(key uint64) bool {
		u, v := unpair(key)
		return s.adj.weight(Vertex(u), Vertex(v)) > 0
	}
	label := func(key uint64) bool { return s.View().Label(Vertex(key)).Class != event.NoClass }
	prediction := func(key uint64) bool {
		version := s.version.data[key]
		return version != noVersion && !IsDerived(s.versions.names[version])
	}
	if err := s.expiry.edges.check(s.time, edge); err != nil {
		return fmt.Errorf("edges: %w", err)
	}
	if err := s.expiry.labels.check(s.time, label); err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	if err := s.expiry.predictions.check(s.time, prediction); err != nil {
		return fmt.Errorf("predictions: %w", err)
	}
	waits := func(key uint64) bool { return s.waiting(Vertex(key)) != nil }
	if err := s.expiry.waiting.check(s.time, waits); err != nil {
		return fmt.Errorf("waiting predictions: %w", err)
	}
	return nil
}

// check checks that everything that ends is there, will end, and will be looked at
// in time.
func (x *ends) check(now event.Time, there func(key uint64) bool) error {
	earliest := make(map[uint64]event.Time, len(x.heap))
	for i, e := range x.heap {
		if i > 0 && earlier(e, x.heap[(i-1)/2]) {
			return fmt.Errorf("the heap is out of order at %d", i)
		}
		if end, ok := earliest[e.key]; !ok || e.end < end {
			earliest[e.key] = e.end
		}
	}
	for _, e := range x.sorted() {
		high, low := unpair(e.key)
		if look, ok := earliest[e.key]; !ok || look > e.end || e.end <= now {
			return fmt.Errorf("%d-%d ends at %d, looked at: %t at %d, now %d", high, low, e.end, ok, look, now)
		}
		if !there(e.key) {
			return fmt.Errorf("%d-%d ends but is not there", high, low)
		}
	}
	return nil
}

// checkErased checks that erased vertices have nothing and that their names are gone.
func (s *Store) checkErased() error {
	w := s.View()
	for v := range Vertex(w.Vertices()) {
		if !w.Erased(v) {
			continue
		}
		if len(w.Neighbors(v)) > 0 || len(w.MemberOf(v)) > 0 ||
			w.Label(v).Class != event.NoClass || w.Prediction(v) != nil {
			return fmt.Errorf("vertex %d is erased and not empty", v)
		}
		for key := range s.attributes.keys {
			if s.attributes.at(v, key).Kind != event.NullValue {
				return fmt.Errorf("vertex %d is erased and has an attribute", v)
			}
		}
	}
	zeros := 0
	for _, b := range s.ids.bytes.data {
		if b == 0 {
			zeros++
		}
	}
	if zeros < s.ids.dead {
		return fmt.Errorf("%d bytes of erased names, %d bytes cleared", s.ids.dead, zeros)
	}
	return nil
}

// checkModels checks that one model version alone is read, and recounts how far the
// incoming one has come.
func (s *Store) checkModels() error {
	m, k := &s.models, s.config.Classes
	for v := range Vertex(len(s.classes.data)) {
		held := s.version.data[v]
		if held != noVersion && held != m.active && !IsDerived(s.versions.names[held]) {
			return fmt.Errorf("vertex %d has a prediction of version %d, active is %d", v, held, m.active)
		}
	}
	if m.incoming == noVersion {
		if len(m.pending.data) > 0 || m.counts != (RollOut{}) {
			return fmt.Errorf("no version is incoming, %d units wait and the counts are %+v", len(m.pending.data), m.counts)
		}
		return nil
	}
	if int(m.incoming) >= len(s.versions.names) || m.incoming == m.active || len(m.pending.data) != len(s.units.data) {
		return fmt.Errorf("version %d of %d is incoming beside %d, with %d units of %d",
			m.incoming, len(s.versions.names), m.active, len(m.pending.data), len(s.units.data))
	}
	for v := range Vertex(len(s.classes.data)) {
		sum := uint64(0)
		for _, unit := range m.pending.data[int(v)*k:][:k] {
			sum += uint64(unit)
		}
		if sum != 0 && (sum != event.One || s.ids.erased(v)) {
			return fmt.Errorf("waiting units of vertex %d sum to %d; erased: %t", v, sum, s.ids.erased(v))
		}
	}
	counts := m.counts
	s.recountModels()
	if counts != m.counts {
		return fmt.Errorf("the roll-out counts %+v, a recount gives %+v", counts, m.counts)
	}
	return nil
}
