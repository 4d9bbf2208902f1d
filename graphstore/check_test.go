package graphstore

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// Check recomputes every invariant from nothing and returns the first that does
// not hold. It costs several passes over the store and a look-up of each edge.
func (s *Store) Check() error {
	n, now, clock := s.ids.len(), s.step.now, s.step.endsBy
	for _, have := range [...]int{len(s.edges.runs), len(s.members.of)} {
		if have != n {
			return fmt.Errorf("graphstore: columns of %d and %d vertices", have, n)
		}
	}
	for _, part := range [...]struct {
		name  string
		check func() error
	}{
		{"ids", s.ids.check},
		{"edges", func() error { return s.edges.check(clock) }},
		{"labelling", func() error { return s.labelling.check(n, now, clock) }},
		{"attributes", s.attributes.check},
		{"members", s.members.check},
		{"rules", s.checkRules},
		{"erasures", s.checkErased},
	} {
		if err := part.check(); err != nil {
			return fmt.Errorf("graphstore: %s: %w", part.name, err)
		}
	}
	return nil
}

// checkRules checks that exactly the vertices that a rule says are members.
func (s *Store) checkRules() error {
	for i := range s.members.communities {
		c := &s.members.communities[i]
		if c.rule.Kind == Explicit {
			continue
		}
		want, hops := s.searchMembers(c.rule, s.ids.len()).vertices, 0
		if c.rule.Kind == Ego {
			fresh := newEgo(c.rule)
			want, hops = slices.Sorted(slices.Values(fresh.search(s.graph()))), fresh.radius
		}
		if err := c.checkMembers(want, hops); err != nil {
			return err
		}
	}
	return nil
}

// checkErased checks that erased vertices have nothing.
func (s *Store) checkErased() error {
	w := s.View()
	for v := range Vertex(w.Vertices()) {
		if !w.Erased(v) {
			continue
		}
		if len(w.Neighbors(v)) > 0 || len(w.MemberOf(v)) > 0 ||
			w.Label(
				v,
			).Class != event.NoClass || w.Prediction(v) != nil || s.labelling.waiting(v) != nil {
			return fmt.Errorf("vertex %d is erased and not empty", v)
		}
		for _, column := range s.attributes {
			if column.at(v).Kind != event.NullValue {
				return fmt.Errorf("vertex %d is erased and has an attribute", v)
			}
		}
	}
	return nil
}

// check recomputes the labels and predictions of n vertices at a log time.
func (l *labelling) check(n int, now, clock event.Time) error {
	if len(l.classes.data) != n || len(l.roles.data) != n || len(l.version.data) != n ||
		len(l.units.data) != n*l.config.Classes || len(l.times.data) != n {
		return fmt.Errorf(
			"columns of %d classes, %d roles, %d versions, %d units and %d times for %d vertices",
			len(l.classes.data), len(l.roles.data), len(l.version.data), len(l.units.data),
			len(l.times.data), n,
		)
	}
	return cmp.Or(l.checkColumns(n, now), l.checkAudits(), l.checkModels(), l.checkEnds(clock))
}

// checkEnds checks that every label and prediction with an end is in a queue. Those that a
// built-in classifier derived have no end.
func (l *labelling) checkEnds(now event.Time) error {
	label := func(key uint64) bool {
		return l.Label(Vertex(key)).Class != event.NoClass || l.Audit(Vertex(key)) != noAudit
	}
	prediction := func(key uint64) bool {
		version := l.version.data[key]
		return version != noVersion && !IsDerived(l.versions.names[version])
	}
	waits := func(key uint64) bool { return l.waiting(Vertex(key)) != nil }
	return cmp.Or(
		l.labelEnds.check(now, label),
		l.predictionEnds.check(now, prediction),
		l.models.waiting.check(now, waits),
	)
}

// check proves the adjacency and that every edge that ends is there.
func (g *edges) check(now event.Time) error {
	if err := g.adjacency.check(); err != nil {
		return err
	}
	return g.ends.check(now, func(key uint64) bool {
		u, v := unpair(key)
		return g.weight(Vertex(u), Vertex(v)) > 0
	})
}

// check checks that every column has values that attributes can have.
func (a attributes) check() error {
	for key, column := range a {
		for v, x := range *column {
			if x != noValue &&
				(x.Value().Kind == event.NullValue || math.Signbit(x.Value().Number) &&
					x.Value().Number == 0) {
				return fmt.Errorf("vertex %d has the value %v of key %q", v, x.Value(), key)
			}
		}
	}
	return nil
}

// check checks that everything that ends is there, will end, and will be looked at
// in time.
func (x *ends) check(now event.Time, there func(key uint64) bool) error {
	earliest := make(map[uint64]event.Time, len(x.heap))
	for i, e := range x.heap {
		if i > 0 && x.heap.Less(i, (i-1)/2) {
			return fmt.Errorf("the heap is out of order at %d", i)
		}
		if end, ok := earliest[e.key]; !ok || e.end < end {
			earliest[e.key] = e.end
		}
	}
	for _, e := range x.sorted() {
		high, low := unpair(e.key)
		if look, ok := earliest[e.key]; !ok || look > e.end || e.end <= now {
			return fmt.Errorf(
				"%d-%d ends at %d, looked at: %t at %d, now %d", high, low, e.end, ok, look, now,
			)
		}
		if !there(e.key) {
			return fmt.Errorf("%d-%d ends but is not there", high, low)
		}
	}
	return nil
}
