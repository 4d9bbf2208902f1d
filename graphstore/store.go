package graphstore

import (
	"fmt"
	"slices"

	"gqlstream/ingest/event"
)

// Store is the graph, what is known of its vertices, and the communities. It composes
// its parts: what concerns several of them stands here, everything else in the part that
// holds it. One goroutine owns a store; between two of its calls any number may read its
// View.
type Store struct {
	config Config

	ids        interner
	edges      edges
	labelling  labelling
	attributes attributes
	members    members

	step            step                  // of the batch at hand, with its delta
	hashes, guesses [2 * readAhead]uint32 // of the ends of some edges

	derived      Delta    // of the last Derive
	derivedUnits []uint32 // backing of its PredictionChange.Before
}

// New returns an empty store, or every violation in the configuration.
func New(config Config) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("graphstore: %w", err)
	}
	config = config.withDefaults()
	if config.Allocator == nil {
		config.Allocator = defaultAllocator
	}
	a, seed := config.Allocator, mixSeed(config.HashSeed)
	s := &Store{
		config: config, ids: newInterner(a, seed), attributes: newAttributes(a), members: newMembers(a, config.MembershipsMax),
		edges: edges{adjacency: newAdjacency(a, config.HubDegree, seed), window: config.Windows.Edges, most: config.EdgesMax},
	}
	s.labelling = newLabelling(&s.config)
	s.addRules(config.Communities, nil)
	s.begin(&event.Batch{})
	return s, nil
}

// Limit replaces the limits of a store that are not zero. What the store holds already
// stays, also where that is more.
func (s *Store) Limit(l event.Limits) {
	c := &s.config
	now := l.Or(event.Limits{Vertices: c.VerticesMax, Edges: c.EdgesMax, Communities: c.CommunitiesMax, Memberships: c.MembershipsMax})
	c.VerticesMax, c.EdgesMax, c.CommunitiesMax, c.MembershipsMax = now.Vertices, now.Edges, now.Communities, now.Memberships
	s.edges.most, s.members.most = now.Edges, now.Memberships
}

// View returns the store as it stands.
func (s *Store) View() View { return View{s} }

// graph returns the graph in which ego networks are searched.
func (s *Store) graph() graph { return graph{&s.ids, &s.edges.adjacency} }

// Release gives the Arrow buffers back to their allocator. The store and its
// views must not be used afterwards.
func (s *Store) Release() {
	s.ids.release()
	s.edges.release()
	s.labelling.release()
	s.attributes.release()
	s.members.release()
}

// Compact rewrites the store in canonical form: runs in order of vertices, their
// neighbours sorted, no free blocks, no bytes of erased names, no forgotten
// values. Afterwards two stores that hold the same graph under the same indices
// hold the same bytes and behave alike for ever, whatever their histories; this
// is the form that a snapshot saves and loads. It ends every View.
//
// Cost: two passes over the adjacency, and memory for half a copy of it.
func (s *Store) Compact() {
	s.edges.compact()
	s.ids.compact()
	s.attributes.compact()
	s.members.compact()
}

// Sections compacts the store and returns the tables of its snapshot, which must
// be written before the next Apply.
func (s *Store) Sections() []Section {
	s.Compact()
	return s.View().Sections()
}

// compactIfIdle rewrites what has too much free space. When it does so depends on the
// history since the last Compact alone.
func (s *Store) compactIfIdle() {
	if s.edges.arena.idleTooMuch() || s.edges.hubs.arena.idleTooMuch() {
		s.edges.compact()
	}
	if s.members.arena.idleTooMuch() {
		s.members.compact()
	}
}

// Check recomputes every invariant from nothing and returns the first that does
// not hold. It costs several passes over the store and a look-up of each edge.
func (s *Store) Check() error {
	n, now := s.ids.len(), s.step.now
	for _, have := range [...]int{len(s.edges.runs.data), len(s.members.runs.data)} {
		if have != n {
			return fmt.Errorf("graphstore: columns of %d and %d vertices", have, n)
		}
	}
	for _, part := range [...]struct {
		name  string
		check func() error
	}{
		{"interner", s.ids.check},
		{"edges", func() error { return s.edges.check(now) }},
		{"labelling", func() error { return s.labelling.check(n, now) }},
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
		if c.retired || c.rule.Kind == Explicit || c.rule.Kind == Everyone {
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
			w.Label(v).Class != event.NoClass || w.Prediction(v) != nil || s.labelling.waiting(v) != nil {
			return fmt.Errorf("vertex %d is erased and not empty", v)
		}
		for key := range s.attributes.keys {
			if s.attributes.at(v, key).Kind != event.NullValue {
				return fmt.Errorf("vertex %d is erased and has an attribute", v)
			}
		}
	}
	return nil
}
