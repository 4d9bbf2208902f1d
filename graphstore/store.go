package graphstore

import (
	"slices"
	"sync"

	"gqlstream/ingest/event"
)

// Store is the graph, the data about its vertices, and the communities. It composes its parts: code
// that concerns several of them is here, everything else in the part that holds the data. One
// goroutine owns a store; between two of its calls any number may read its View.
type Store struct {
	config Config
	except exception
	copied bool // see Sections

	parts

	step step // of the batch at hand, with its delta

	derived      Delta    // of the last Derive
	derivedUnits []uint32 // backing of its PredictionChange.Before
}

// parts hold all data of a store. Their exported methods are those of a View.
type parts struct {
	ids
	edges
	labelling
	attributes
	members
}

// New returns an empty store, or every violation in the configuration.
func New(config Config) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	s := &Store{config: config, except: newException(&config.Evidence), parts: parts{
		ids: newIDs(), attributes: attributes{}, members: newMembers(config.Limits.Memberships, 0),
		edges: edges{
			adjacency: newAdjacency(config.hubDegree),
			window:    config.Windows.Edges,
			most:      config.Limits.Edges,
		},
	}}
	s.labelling = newLabelling(&s.config)
	s.addRules(config.Communities, nil)
	s.resetBatch(&event.Batch{})
	return s, nil
}

// Limit replaces the limits of a store that are not zero. Content beyond a new limit stays.
func (s *Store) Limit(l event.Limits) {
	s.config.Limits = l.Or(s.config.Limits)
	s.edges.most = s.config.Limits.Edges
	s.members.most = s.config.Limits.Memberships
}

// View returns the store as it stands.
func (s *Store) View() View { return View{&s.parts, s} }

// graph returns the graph for the search of ego networks.
func (s *Store) graph() graph { return graph{&s.ids, &s.edges.adjacency} }

// Release frees all data of the store, even if the store itself is still referenced. Neither it nor
// its views may be used afterwards.
func (s *Store) Release() { s.parts = parts{} }

// Compact brings the store into canonical form, with neighbours sorted. Afterwards two stores that
// hold the same graph under the same indices behave the same for ever, whatever their histories. A
// snapshot saves and loads this form. Every View becomes invalid.
//
// Cost: one pass over the vertices, and a sorted copy of the changed ones.
func (s *Store) Compact() {
	s.edges.compact()
	s.attributes.compact()
	s.members.vertices = nil
	s.members.multiplicities = nil // as long as the largest changed community
}

// Sections compacts the store and returns the tables of its snapshot. The two large ones, vertices
// and adjacency, read copies: copying takes a tenth of the time of encoding. The others must be
// encoded before the next Apply.
func (s *Store) Sections() []Section {
	s.Compact()
	sections, copied := s.View().Sections(), s.copyVertices()
	for i := range sections {
		if t := sections[i].Table; t == verticesTable || t == adjacencyTable {
			sections[i].store = copied
		}
	}
	return sections
}

// copyVertices returns a store with copies of the data that the tables vertices and adjacency read.
func (s *Store) copyVertices() *Store {
	c := &Store{config: s.config, copied: true}
	var copying sync.WaitGroup
	copying.Go(func() {
		c.edges.adjacency = s.edges.adjacency.snapshot()
	})
	c.ids = ids{list: slices.Clone(s.ids.list)}
	l := &s.labelling
	c.labelling = labelling{
		config:   &c.config,
		classes:  l.classes.clone(),
		roles:    l.roles.clone(),
		times:    l.times.clone(),
		units:    l.units.clone(),
		version:  l.version.clone(),
		evidence: l.evidence.clone(),
	}
	copying.Wait()
	return c
}
