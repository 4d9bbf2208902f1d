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

// Audit is an audit label: the class of a vertex that was drawn at random. It is a type of its own
// so that code that reads labels, for calibration or training, does not see audit labels.
type Audit struct {
	Class event.Class // NoClass when there is none
	// sampling probability in units of 2^-30; 0 when there is none
	Pi uint32
}

// Delta lists exactly the changes of a batch. They are net: a change that the batch undid is
// absent. Each list is sorted by its key and holds the values before; the View has the values
// after. A Delta is valid until the next Apply.
type Delta struct {
	Position event.Position
	Time     event.Time

	FirstVertex    Vertex    // vertices FirstVertex <= v < View.Vertices() are new
	FirstCommunity Community // likewise for communities
	Erased         []Vertex  // sorted: vertices that lost all data and their names
	Reused         []Vertex  // sorted: indices of vertices erased earlier, given to new ones now

	Edges       []EdgeChange       // by (U, V), U < V
	Endpoints   []Vertex           // sorted: every vertex of Edges
	Labels      []LabelChange      // by V
	Audits      []AuditChange      // by V
	Predictions []PredictionChange // by V
	Evidence    []EvidenceChange   // by V: the observations behind predictions
	Members     []MemberChange     // by (Community, V); rule-based memberships included
	// sorted: vertices with attributes that were set, perhaps to the same value, or erased
	Attributes []Vertex
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
	TimeBefore    event.Time // as View.LabelTime returned it
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

// EvidenceChange is a change of the evidence behind the prediction of V: an observation was added
// or replaced, even if the prediction did not change, or the prediction was removed.
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
