package event

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Position is the sequence of a message in the stream (or the row in a file
// source), counted from 1. Zero means "before the first message".
type Position uint64

// Time is nanoseconds since the Unix epoch. Zero means "not given".
type Time int64

// String renders the time as RFC 3339 in UTC, or "-" when it was not given.
func (t Time) String() string {
	if t == 0 {
		return "-"
	}
	return time.Unix(0, int64(t)).UTC().Format(time.RFC3339Nano)
}

// Class is the index of a label class, 0 <= Class < K.
type Class int32

// NoClass means "no label": a label event with this class withdraws the label.
const NoClass Class = -1

// One is probability one as an integer. Predictions are stored in units of 2^-30,
// and the K units of a prediction sum to exactly One.
const One = 1 << 30

// Kind names the subject matter of an event. The subject of a message names it.
type Kind uint8

// The seven kinds of event.
const (
	KindEdge Kind = iota
	KindLabel
	KindPrediction
	KindPost
	KindMember
	KindVertex
	KindControl
	Kinds int = iota
)

// kindNames are the names of all kinds, by kind.
var kindNames = [...]string{
	KindEdge: "edge", KindLabel: "label", KindPrediction: "prediction", KindPost: "post",
	KindMember: "member", KindVertex: "vertex", KindControl: "control",
}

// KindNames returns the names of all kinds in the order of the constants.
func KindNames() []string { return slices.Clone(kindNames[:]) }

// EachKindOnce returns its arguments, which must name every kind once: a list that lacks a
// kind would lose the events of this kind in silence, so it panics.
func EachKindOnce(kinds ...Kind) []Kind {
	sorted := slices.Sorted(slices.Values(kinds))
	for i, k := range sorted {
		if int(k) != i {
			panic(fmt.Sprintf("event: %v are not every kind once", kinds))
		}
	}
	if len(sorted) != Kinds {
		panic(fmt.Sprintf("event: %v are %d of %d kinds", kinds, len(sorted), Kinds))
	}
	return kinds
}

// String returns the kind's name, which is also the last token of its subject.
func (k Kind) String() string {
	if int(k) >= Kinds {
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kindNames[k]
}

// Predicts reports whether events of the kind carry the probabilities of a classifier.
func (k Kind) Predicts() bool { return k == KindPrediction || k == KindPost }

// ParseKind is the inverse of String.
func ParseKind(name string) (Kind, bool) {
	k := slices.Index(kindNames[:], name)
	return Kind(max(k, 0)), k >= 0
}

// ID names a vertex in the outside world: an unsigned integer when Name is
// empty, else a string. A string that is the canonical decimal form of an
// unsigned 64-bit integer *is* that integer, so "42" in a CSV file, "42" in JSON
// and 42 in an Arrow column are one vertex. Build with ParseID or NumberID only.
type ID struct {
	Name   string
	Number uint64
}

// NumberID returns the identity of the integer n.
func NumberID(n uint64) ID { return ID{Number: n} }

// ParseID returns the identity that s names. It does not copy s.
func ParseID(s string) ID {
	if n := len(s); n > 0 && n <= 20 && s[0] >= '0' && s[0] <= '9' && (s[0] != '0' || n == 1) {
		if v, err := strconv.ParseUint(s, 10, 64); err == nil {
			return ID{Number: v}
		}
	}
	return ID{Name: s}
}

// String returns the identity as users write it.
func (id ID) String() string {
	if id.Name != "" {
		return id.Name
	}
	return strconv.FormatUint(id.Number, 10)
}

// Role names the use of a label.
type Role uint8

const (
	// Calibrate labels estimate the classifier's confusion. The default.
	Calibrate Role = iota
	// Train labels made the classifier: they never enter the confusion estimate.
	Train
	// Audit labels are of members drawn at random with a known probability. They estimate
	// the shares of a community with no assumption about classifier or graph, and so neither
	// make the classifier nor calibrate it.
	Audit
)

var roleNames = [...]string{"calibrate", "train", "audit"}

// String returns the role as it is written in events.
func (r Role) String() string { return roleNames[r] }

// PiMin is the least sampling probability of an audit label, in units of 2^-30: about one in a
// million. The square of its inverse still fits the sums.
const PiMin = One >> 20

// WeightUnit is the grain of edge weights: weights are rounded to multiples of 2^-20, so that sums
// of weights are exact in float64 in whatever order they are taken (up to a total weight of 2^33).
const WeightUnit = 1.0 / (1 << 20)

// WeightMax bounds an edge weight.
const WeightMax = 1 << 24

// RoundWeight returns w rounded to a multiple of WeightUnit.
func RoundWeight(w float64) float64 { return math.Round(w/WeightUnit) * WeightUnit }

// Edge asserts that an undirected edge has a weight, or is absent.
type Edge struct {
	Src, Dst ID
	Weight   float64       // > 0, a multiple of WeightUnit; ignored when Remove
	TTL      time.Duration // > 0: the edge ends at Time + TTL; 0 when Remove
	Time     Time
	Position Position
	Index    uint32 // of the event in its message, as of all kinds
	Remove   bool
}

// Label asserts the true class of a vertex, or that it is unknown (NoClass).
type Label struct {
	Vertex   ID
	Class    Class
	Role     Role
	Pi       uint32 // of Audit: the sampling probability in units of 2^-30, >= PiMin; else 0
	Index    uint32
	TTL      time.Duration // > 0: the label ends at Time + TTL; 0 with NoClass
	Time     Time
	Position Position
}

// Prediction asserts the class probabilities that a classifier gives a vertex.
type Prediction struct {
	Vertex ID
	// Units are the K probabilities in units of 2^-30. They sum to One, and the batch owns them.
	// nil withdraws the prediction, which no wire form can say.
	Units    []uint32
	Version  string        // model version; may be empty
	TTL      time.Duration // > 0: the prediction ends at Time + TTL, unless replaced
	Time     Time
	Position Position
	Index    uint32

	// Rests is the evidence behind a prediction that is copied from another state. No wire form
	// has this field. The zero value means one observation at Time.
	Rests Evidence
}

// Post is one post of an author, as a classifier read it. It adds to the author's evidence:
// the author's prediction is the mean of the author's posts, each weighted by its age. A post
// that answers or reposts another author also asserts an edge between the two.
type Post struct {
	Author   ID
	Units    []uint32      // probabilities of the post, as in a Prediction; never nil
	Version  string        // model version; may be empty
	ID       string        // of the post; may be empty
	ReplyTo  Reference     // the author whose post this one answers
	RepostOf Reference     // the author whose post this one repeats
	Weight   float64       // of its edges: > 0, a multiple of WeightUnit
	TTL      time.Duration // > 0: how long its edges last; 0: as configured
	Time     Time
	Position Position
	Index    uint32
}

// Member asserts a vertex's multiplicity in an explicit community; zero means it is not a member.
type Member struct {
	Community    string
	Vertex       ID
	Multiplicity uint32
	Index        uint32
	Time         Time
	Position     Position
}

// Attribute is one key and value of a vertex.
type Attribute struct {
	Key   string
	Value Value
}

// Vertex asserts attributes of a vertex, or erases the vertex and all data about it.
type Vertex struct {
	Vertex     ID
	Attributes []Attribute // in the order of the event; a null value removes the key
	Erase      bool
	Index      uint32
	Time       Time
	Position   Position
}

// ValueKind is the type of an attribute value.
type ValueKind uint8

// The types of an attribute value. A null removes the attribute.
const (
	NullValue ValueKind = iota
	StringValue
	NumberValue
	BoolValue
)

// Value is an attribute value. It is comparable.
type Value struct {
	Text   string  // StringValue
	Number float64 // NumberValue, finite; 0 or 1 for BoolValue
	Kind   ValueKind
}

// Op names the operation that a control event asks for.
type Op uint8

// Control operations. All but Tick end their step, and all but SetClock take effect at its end.
const (
	Tick       Op = iota // puts time into the log
	Flush                // ends the step and emits every changed estimate
	Checkpoint           // asks for a checkpoint at this position
	Configure            // replaces the configured communities
	Note                 // flushes, and draws a line with a text in every chart
	Recompute            // computes again all that follows from the graph
	SetClock             // sets log time to the time of this event, also backwards
)

var opNames = [...]string{"tick", "flush", "checkpoint", "configure", "note", "recompute", "clock"}

// String returns the operation as it is written in events.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

// Control steers the pipeline from inside the log.
type Control struct {
	Op       Op
	Config   json.RawMessage // Configure only
	Text     string          // Note only
	Time     Time
	Position Position
	Index    uint32
}

// Batch is the input of one step: whole messages, in stream order. Events of one kind keep their
// order; the kinds are separate because they touch separate state. An erasure, the only event whose
// order against other kinds matters, gets a batch of its own. A batch is reused: its slices and the
// strings in them are valid until the next Reset.
type Batch struct {
	First, Last Position // of its messages; First > Last when it holds none
	Time        Time     // the log's at the end of the batch; it decreases only where SetsClock
	// EndsBy is the time at which assertions are checked for expiry. It is the time of the last
	// receipt while log time stands still after a leap of the broker's clock; 0: use Time
	EndsBy     Time
	Emit       bool // an emission boundary follows this batch
	EmitAll    bool // with Emit: publish every change, however small (a flush, or the end of files)
	Checkpoint bool // a checkpoint is asked for after this batch

	Edges       []Edge
	Labels      []Label
	Predictions []Prediction
	Posts       []Post
	Members     []Member
	Vertices    []Vertex
	Controls    []Control
	Refused     []Refusal // events that the batch does not hold, with reasons

	Late [Kinds]int // events that came late, by kind: applied, or refused as Late

	units      []uint32    // backing of Prediction.Units
	attributes []Attribute // backing of Vertex.Attributes
	text       []byte      // backing of strings that do not alias a message
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Rollback(Counts{})
	clear(b.attributes)
	*b = Batch{
		Edges: b.Edges, Labels: b.Labels, Predictions: b.Predictions, Posts: b.Posts,
		Members: b.Members, Vertices: b.Vertices, Controls: b.Controls,
		Refused: b.Refused, units: b.units[:0], attributes: b.attributes[:0],
		text: b.text[:0],
	}
}

// Events returns the number of events in the batch.
func (b *Batch) Events() (n int) {
	for k := range Kind(Kinds) {
		n += b.Count(k)
	}
	return n
}

// Reason says in one word why an event or a message was refused. Counters and
// the quarantine use it, so the set is fixed.
type Reason string

// The reasons for a refusal.
const (
	Malformed     Reason = "malformed"      // the bytes are not valid in their declared format
	TooLarge      Reason = "too-large"      // a message, an id or a count above its limit
	UnknownField  Reason = "unknown-field"  // a field that the event kind does not have
	MissingField  Reason = "missing-field"  // a required field is missing
	BadValue      Reason = "bad-value"      // a value of the wrong type or out of range
	NotFinite     Reason = "not-finite"     // NaN or infinity
	NotNormal     Reason = "not-normal"     // probabilities negative, or their sum too far from one
	WrongClasses  Reason = "wrong-classes"  // not K probabilities
	UnknownClass  Reason = "unknown-class"  // a class that is not configured
	SelfLoop      Reason = "self-loop"      // an edge from a vertex to itself
	BadWeight     Reason = "bad-weight"     // weight <= 0, below the grain, or too large
	BadID         Reason = "bad-id"         // empty, longer than 256 bytes, or not UTF-8
	BadTime       Reason = "bad-time"       // a time that is neither RFC 3339 nor Unix seconds
	UnknownKind   Reason = "unknown-kind"   // a subject that names no event kind
	BadConfig     Reason = "bad-config"     // a configure event the core cannot accept
	LimitExceeded Reason = "limit-exceeded" // a vertex, edge or community above its limit
	Late          Reason = "late"           // older than the policy for its kind allows
	Skipped       Reason = "skipped"        // an operator has recorded in the log to skip it
	Ahead         Reason = "ahead"          // further ahead of its message's time than is allowed
)

// Reasons lists every reason.
var Reasons = []Reason{
	Malformed, TooLarge, UnknownField, MissingField, BadValue, NotFinite, NotNormal, WrongClasses,
	UnknownClass, SelfLoop, BadWeight, BadID, BadTime, UnknownKind, BadConfig, LimitExceeded, Late,
	Skipped, Ahead,
}

// Refusal is one message (Index < 0) or one event of a message that was not
// applied. It goes to the quarantine with the original bytes.
type Refusal struct {
	Position Position
	Index    int // of the event in its message, from 0; -1 for the whole message
	Kind     Kind
	Reason   Reason
	Detail   string
	Original []byte // the message, or the event re-encoded as JSON

	// ContentType is the header of a message refused whole; the source sets it.
	ContentType string

	// More counts the events refused directly after this one for the same reason.
	// Nothing else is stored about them.
	More int
}

// CountRefused returns how many events or messages were refused.
func CountRefused(list []Refusal) int {
	n := len(list)
	for i := range list {
		n += list[i].More
	}
	return n
}
