package graphstore

import (
	"fmt"

	"gqlstream/ingest/event"
)

// noVersion marks a vertex without a prediction in the version column.
const noVersion = ^uint32(0)

// Store is the graph, the vertex columns and the communities. One goroutine owns
// it; between two of its calls any number may read its View.
type Store struct {
	config Config
	time   event.Time // log time of the last batch

	ids        interner
	adj        adjacency
	classes    column[int32]      // n: true class, or -1
	roles      column[uint8]      // n
	times      column[event.Time] // n: when the label was asserted, or 0; empty unless LabelTimes
	units      column[uint32]     // n x K
	version    column[uint32]     // n: model version of the prediction, or noVersion
	versions   names
	models     models
	attributes attributes
	members    members
	expiry     expiry

	delta Delta
	work  work

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
	a := config.Allocator
	s := &Store{
		config: config, ids: newInterner(a), adj: newAdjacency(a, config.HubDegree),
		classes: newColumn[int32](a), roles: newColumn[uint8](a), times: newColumn[event.Time](a),
		units: newColumn[uint32](a), version: newColumn[uint32](a),
		versions: newNames(), models: newModels(), attributes: newAttributes(a), members: newMembers(a),
	}
	s.addRules(config.Communities)
	s.begin(0, 0)
	return s, nil
}

// View returns the store as it stands.
func (s *Store) View() View { return View{s} }

// Release gives the Arrow buffers back to their allocator. The store and its
// views must not be used afterwards.
func (s *Store) Release() {
	s.ids.release()
	s.adj.release()
	s.classes.release()
	s.roles.release()
	s.times.release()
	s.units.release()
	s.version.release()
	s.models.pending.release()
	s.attributes.release()
	s.members.release()
}
