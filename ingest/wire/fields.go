package wire

import (
	"slices"
	"strings"

	"gqlstream/ingest/event"
)

// field is a field of an event.
type field uint8

const (
	fieldOp field = iota
	fieldSrc
	fieldDst
	fieldWeight
	fieldTTL
	fieldTime
	fieldVertex
	fieldAuthor
	fieldID
	fieldReplyTo
	fieldRepostOf
	fieldClass
	fieldRole
	fieldPi
	fieldProbabilities
	fieldVersion
	fieldCommunity
	fieldMultiplicity
	fieldAttributes
	fieldErase
	fieldConfig
	fieldText
	fieldCount int = iota
)

// fieldSpec is one field of a kind of event. The decoders and encoders of every
// form, the messages about unknown fields and docs/events.md share it.
type fieldSpec struct {
	field    field
	name     string     // the canonical name
	alias    string     // also accepted
	columns  []string   // the names in files; none: name and alias
	required bool       // in Arrow and files: the column is required
	holds    *fieldType // type of its value
	words    []string   // of a word: the valid words; the first is the default

	// value returns the address of the field in event i of a batch; nil if the event has no such
	// field.
	value func(b *event.Batch, i int) any
}

// The words of the fields op, erase and role.
var (
	edgeOps    = []string{"add", "remove"}
	memberOps  = []string{"join", "leave"}
	flags      = []string{"false", "true"}
	controlOps = []string{
		event.Tick.String(), event.Flush.String(), event.Checkpoint.String(),
		event.Configure.String(), event.Note.String(), event.Recompute.String(),
		event.SetClock.String(),
	}
	roles = []string{event.Calibrate.String(), event.Train.String(), event.Audit.String()}
)

// The names of columns in files, in addition to those of messages. The first is ours.
var (
	timeColumns    = []string{"time", "ts"}
	vertexColumns  = []string{"vertex", "id"}
	labelColumns   = []string{"label", "class"}
	versionColumns = []string{"version", "model", "model_version"}
	authorColumns  = []string{"author", "author_id", "user", "user_id"}
	postIDColumns  = []string{"id", "post_id"}
	replyColumns   = []string{"reply_to", "in_reply_to_user_id", "reply_to_user_id"}
	repostColumns  = []string{"repost_of", "repost_of_user_id", "retweeted_user_id"}
)

// leaving is a multiplicity set by an operation: zero leaves.
type leaving uint32

// share is a probability in units of 2^-30; zero is none.
type share uint32

// findField returns the index in fields[kind] of the field with a name, or -1.
func findField(kind event.Kind, name string) int {
	for i := range fields[kind] {
		if s := &fields[kind][i]; s.name == name || s.alias == name && name != "" {
			return i
		}
	}
	return -1
}

// specOf returns the specification of a field of a kind.
func specOf(kind event.Kind, f field) *fieldSpec {
	return &fields[kind][slices.IndexFunc(fields[kind],
		func(s fieldSpec) bool { return s.field == f })]
}

// fieldNames are the canonical names and the aliases of the fields of each kind.
var fieldNames = func() (names [event.Kinds][]string) {
	for kind, specs := range fields {
		for _, s := range specs {
			names[kind] = append(names[kind], s.name)
			if s.alias != "" {
				names[kind] = append(names[kind], s.alias)
			}
		}
	}
	return names
}()

// form is the kind of input of a value. Forms differ in the cells that they accept for a field: a
// message has typed values, a file often does not.
type form uint8

const (
	jsonForm  form = iota // JSON messages
	arrowForm             // Arrow messages
	fileForm              // files with types: NDJSON, Parquet, Arrow
	textForm              // CSV and TSV, where every value is text
	forms     = int(iota)
)

// cells is a set of kinds of cells.
type cells uint16

const (
	ofText   cells = 1 << TextCell
	ofUint   cells = 1 << UintCell
	ofNumber cells = 1<<NumberCell | ofUint
	ofBool   cells = 1 << BoolCell
	ofTime   cells = 1 << TimeCell
	ofList   cells = 1 << ListCell
	ofObject cells = 1 << ObjectCell
	ofNull   cells = 1 << NullCell
	ofScalar       = ofText | ofNumber | ofBool
)

// holds reports whether the set has a kind.
func (s cells) holds(k CellKind) bool { return s>>k&1 != 0 }

// fieldType is the type of a field: the accepted cells of each form, and its description.
type fieldType struct {
	accepts [forms]cells
	reason  event.Reason // for a cell of another kind
	must    string       // requirement, for messages
	want    string       // requirement, for files
	arrow   string       // the types of an Arrow column, for docs/events.md
}

var (
	idType = fieldType{
		[forms]cells{ofText | ofUint, ofText | ofUint, ofText | ofNumber, ofText},
		event.BadID,
		"a string or an unsigned 64-bit integer", "text or a whole number", "any integer, utf8",
	}
	nameType = fieldType{
		[forms]cells{ofText | ofNumber, ofText | ofUint, ofText | ofNumber, ofText},
		event.BadID,
		"a string or an unsigned integer", "a name", "utf8, any integer",
	}
	numberType = fieldType{
		[forms]cells{ofNumber, ofNumber, ofText | ofNumber, ofText},
		event.BadValue,
		"a number", "a number", "float64, float32, any integer",
	}
	timeType = fieldType{
		[forms]cells{
			ofText | ofNumber, ofText | ofNumber | ofTime, ofText | ofNumber | ofTime, ofText,
		},
		event.BadTime,
		"RFC 3339 or Unix seconds", "RFC 3339 or Unix seconds, between 1823 and 2116",
		"timestamp, float64 (s), any integer (s), utf8",
	}
	ttlType = fieldType{
		[forms]cells{ofText | ofNumber, ofText | ofNumber, ofText | ofNumber, ofText},
		event.BadValue, "a number of seconds or a duration", `seconds or a duration like "36h"`,
		"float64 (s), any integer (s), utf8",
	}
	classType = fieldType{
		[forms]cells{
			ofText | ofUint | ofNull, ofText | ofUint | ofNull, ofScalar | ofNull, ofText | ofNull,
		},
		event.BadValue, "an index, a name or null", "a class", "any integer, utf8",
	}
	choiceType = fieldType{ // a word; in tables also a number or a boolean
		[forms]cells{ofText, ofText | ofUint | ofBool, ofScalar, ofText},
		event.BadValue,
		"a string", "", "utf8, any integer (0, 1), bool",
	}
	wordType = fieldType{
		[forms]cells{ofText, ofText, ofScalar, ofText}, event.BadValue, "a string", "", "utf8",
	}
	countType = fieldType{
		[forms]cells{ofNumber, ofUint, ofText | ofNumber, ofText},
		event.BadValue,
		"an integer from 0 to 2^32-1", "a whole number from 0 to 2^32-1", "any integer",
	}
	flagType = fieldType{
		[forms]cells{ofBool, ofBool, ofScalar, ofText}, event.BadValue, "true or false", "", "bool",
	}
	unitsType = fieldType{
		[forms]cells{ofList, ofList, ofList, 0},
		event.BadValue,
		"an array of numbers", "a list of numbers", "fixed_size_list of K float64 or float32",
	}
	attributesType = fieldType{
		[forms]cells{ofObject, ofScalar, ofObject | ofText, ofText},
		event.BadValue,
		"an object", "a JSON object of attributes", "utf8, float64, float32, any integer, bool",
	}
	configType = fieldType{
		[forms]cells{ofObject, ofText, 0, 0}, event.BadValue, "an object", "an object", "utf8",
	}
)

// want describes the valid values of the field in a file.
func (s *fieldSpec) want() string {
	if s.words != nil {
		last := len(s.words) - 1
		return strings.Join(s.words[:last], ", ") + " or " + s.words[last]
	}
	return s.holds.want
}

// unfit returns the problem of a value of the wrong type.
func (s *fieldSpec) unfit(f form, c *Cell) *event.Problem {
	reason := s.holds.reason
	if s.holds == &classType && c.Kind == NumberCell {
		reason = event.UnknownClass
	}
	switch {
	case f >= fileForm && c.Missing():
		return event.Problemf(event.MissingField, "missing, want %s", s.want())
	case f >= fileForm:
		return event.Problemf(reason, "%s: want %s", c.String(), s.want())
	case f == arrowForm && c.Kind == NumberCell && c.Text != "":
		// only negative integers have digits
		return event.Problemf(reason, "%s %s is negative", s.name, c.Text)
	}
	return event.Problemf(reason, "%s must be %s, not %s", s.name, s.holds.must, c.String())
}
