package event

// field is something that an event can say.
type field uint8

const (
	fieldOp field = iota
	fieldSrc
	fieldDst
	fieldWeight
	fieldTTL
	fieldTime
	fieldVertex
	fieldClass
	fieldRole
	fieldProbabilities
	fieldVersion
	fieldCommunity
	fieldMultiplicity
	fieldAttributes
	fieldErase
	fieldConfig
	fieldCount int = iota
)

// fieldSpec is one field of a kind of event: the reference that the decoders,
// the messages about unknown fields and docs/events.md share.
type fieldSpec struct {
	field    field
	name     string // the canonical name
	alias    string // also accepted
	required bool   // in Arrow: the column must be there
	arrow    string // the types that an Arrow column may have
}

// The types of Arrow columns by what they hold.
const (
	arrowID        = "any integer, utf8"
	arrowText      = "utf8"
	arrowName      = "utf8, any integer"
	arrowOp        = "utf8, any integer (0, 1), bool"
	arrowNumber    = "float64, float32, any integer"
	arrowTime      = "timestamp, float64 (s), any integer (s), utf8"
	arrowClass     = "any integer, utf8"
	arrowCount     = "any integer"
	arrowTTL       = "float64 (s), any integer (s), utf8"
	arrowBool      = "bool"
	arrowUnits     = "fixed_size_list of K float64 or float32"
	arrowAttribute = "utf8, float64, float32, any integer, bool"
)

// fields holds the fields of each kind in the order in which the encoders write
// them. In Arrow, "probabilities" may also be the columns p0 to p{K-1}, and
// "attributes" stands for every column that is not one of the others.
var fields = [Kinds][]fieldSpec{
	KindEdge: {
		{fieldOp, "op", "", false, arrowOp},
		{fieldSrc, "src", "", true, arrowID},
		{fieldDst, "dst", "", true, arrowID},
		{fieldWeight, "weight", "", false, arrowNumber},
		{fieldTime, "time", "", false, arrowTime},
		{fieldTTL, "ttl", "", false, arrowTTL},
	},
	KindLabel: {
		{fieldVertex, "vertex", "", true, arrowID},
		{fieldClass, "class", "label", true, arrowClass},
		{fieldRole, "role", "", false, arrowText},
		{fieldTime, "time", "", false, arrowTime},
		{fieldTTL, "ttl", "", false, arrowTTL},
	},
	KindPrediction: {
		{fieldVertex, "vertex", "", true, arrowID},
		{fieldProbabilities, "probabilities", "p", false, arrowUnits},
		{fieldClass, "class", "", false, arrowClass},
		{fieldVersion, "version", "model", false, arrowName},
		{fieldTime, "time", "", false, arrowTime},
		{fieldTTL, "ttl", "", false, arrowTTL},
	},
	KindMember: {
		{fieldOp, "op", "", false, arrowOp},
		{fieldCommunity, "community", "", true, arrowName},
		{fieldVertex, "vertex", "", true, arrowID},
		{fieldMultiplicity, "multiplicity", "weight", false, arrowCount},
		{fieldTime, "time", "", false, arrowTime},
	},
	KindVertex: {
		{fieldVertex, "vertex", "id", true, arrowID},
		{fieldAttributes, "attributes", "", false, arrowAttribute},
		{fieldErase, "erase", "", false, arrowBool},
		{fieldTime, "time", "", false, arrowTime},
	},
	KindControl: {
		{fieldOp, "op", "", true, arrowText},
		{fieldConfig, "config", "", false, arrowText},
		{fieldTime, "time", "", false, arrowTime},
	},
}

// findField returns the index in fields[kind] of the field with a name. from is
// where to look first: producers keep an order.
func findField(kind Kind, name string, from int) int {
	specs := fields[kind]
	for range specs {
		if from >= len(specs) {
			from = 0
		}
		if s := &specs[from]; s.name == name || (s.alias == name && name != "") {
			return from
		}
		from++
	}
	return -1
}

// fieldNames returns the canonical names and the aliases of a kind's fields.
func fieldNames(kind Kind) []string {
	var names []string
	for _, s := range fields[kind] {
		names = append(names, s.name)
		if s.alias != "" {
			names = append(names, s.alias)
		}
	}
	return names
}

// opWords are the words of the field op by kind. The first is the default of
// edges and members.
var opWords = [Kinds][]string{
	KindEdge:    {"add", "remove"},
	KindMember:  {"join", "leave"},
	KindControl: {"tick", "flush", "checkpoint", "configure"},
}

// roleWords are the words of the field role, by Role.
var roleWords = []string{"calibrate", "train"}

// word returns the index of s in words.
func word(words []string, s string) (int, bool) {
	for i, w := range words {
		if w == s {
			return i, true
		}
	}
	return 0, false
}

// String returns the operation as it is written in events.
func (o Op) String() string {
	if words := opWords[KindControl]; int(o) < len(words) {
		return words[o]
	}
	return "unknown"
}
