package graphstore

import "gqlstream/ingest/event"

// Vertex is the dense index of a vertex, given in order of first mention.
type Vertex uint32

// Community is the dense index of a tracked community, given in order of
// configuration, then of first mention.
type Community uint32

// Label is a vertex's true class, where it is known.
type Label struct {
	Class event.Class // NoClass when unknown
	Role  event.Role
}

// Audit is an audit label: the class of a vertex that was drawn at random. It is no Label,
// so that whoever reads labels to calibrate, to train or to count members that are known
// does not see it.
type Audit struct {
	Class event.Class // NoClass when there is none
	// the probability of having been drawn, in units of 2^-30; 0 when there is none
	Pi uint32
}

// Delta says exactly what a batch changed: net (what a batch did and undid is
// absent), each list sorted by its key, values before; the values after are in
// the View. A Delta is valid until the next Apply.
type Delta struct {
	Position event.Position
	Time     event.Time

	FirstVertex    Vertex    // vertices FirstVertex <= v < View.Vertices() are new
	FirstCommunity Community // likewise for communities
	Erased         []Vertex  // sorted: lost all that was known of them, their names included
	Reused         []Vertex  // sorted: indices of vertices erased earlier, given to new ones now

	Edges       []EdgeChange       // by (U, V), U < V
	Ends        []Vertex           // sorted: every end of Edges
	Labels      []LabelChange      // by V
	Audits      []AuditChange      // by V
	Predictions []PredictionChange // by V
	Evidence    []EvidenceChange   // by V: what predictions rest on
	Members     []MemberChange     // by (Community, V); rule-based memberships included
}

// EdgeChange is a change of the weight of the edge {U, V}; absent edges weigh 0.
type EdgeChange struct {
	U, V          Vertex
	Before, After float64
}

// LabelChange is a change of the label of V, or of its time alone.
type LabelChange struct {
	V             Vertex
	Before, After Label
	TimeBefore    event.Time // as View.LabelTime would have it
}

// AuditChange is a change of the audit label of V.
type AuditChange struct {
	V             Vertex
	Before, After Audit
}

// PredictionChange is a change of the prediction of V or of its model version.
type PredictionChange struct {
	V             Vertex
	Before, After []uint32 // K units, nil when there is none
	VersionBefore uint32   // index into View.Versions, meaningless without a prediction
}

// EvidenceChange is a change of what the prediction of V rests on: an observation was added
// or replaced, whether or not the prediction moved, or all went with the prediction.
type EvidenceChange struct {
	V      Vertex
	Before Evidence
}

// MemberChange is a change of the multiplicity of V in a community.
type MemberChange struct {
	Community     Community
	V             Vertex
	Before, After uint32
}

// Membership is one community of a vertex.
type Membership struct {
	Community    Community
	Multiplicity uint32
}
