package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"gqlstream/ingest/event"
)

// The content types of messages.
const (
	JSON   = "application/json"                    // one event, or an array of events
	NDJSON = "application/x-ndjson"                // one event a line
	Arrow  = "application/vnd.apache.arrow.stream" // one table of one kind
)

// The headers of messages, besides those of the broker.
const (
	HeaderContentType = "Content-Type"
	HeaderSchema      = "Gqlstream-Schema"
	HeaderChecksum    = "Gqlstream-Checksum"
)

// The schema version of the wire forms in this package, and the key of Arrow tables that holds it.
const (
	schemaVersion    = "1"
	schemaVersionKey = "gqlstream.schema"
)

// Message is one message from the stream.
type Message struct {
	Kind        event.Kind     // from the subject
	ContentType string         // "" is detected from the payload
	Schema      string         // schema version; "" is version 1
	Checksum    string         // see Checksum; "" is not verified
	Payload     []byte         // must not change; the batch aliases it
	Position    event.Position // of every event of the message
	Received    event.Time     // time of events without one
	// how many refusals of its events are stored; the others are counted; 0: all
	RefusalsMax int
	SaysKind    bool // events have a member "kind" as well, like the lines of a log

	Late event.LatePolicy // how to treat events whose own time is far behind Now
	Now  event.Time       // the log's time at this message; 0: none

	TimeMax event.Time // events with a later time are refused as Ahead; 0: no bound
}

// Decoder reads messages into batches. It reuses scratch memory, so it has one owner at a time.
// Build with NewDecoder.
type Decoder struct {
	classes event.ClassSet
	k       int // number of classes
	byName  map[string]event.Class
	signed  bool           // a class has a negative number as its name; see ClassSet.Signed
	zone    *time.Location // for times in files without a zone; nil: they are refused
	guessed Guesses

	batch         *event.Batch // receives the events
	before        event.Counts // its content before the message
	json          jsonReader   // reads the current JSON message
	inner         jsonReader   // reads an object inside an event
	cell, value   Cell         // value of an event, and of an object inside it
	table         table        // current Arrow message
	draft         draft        // current event
	probabilities []float64    // backing of the lists of a row
}

// NewDecoder returns a decoder, or an error that lists every problem of the classes.
func NewDecoder(classes event.ClassSet) (*Decoder, error) {
	if err := classes.Validate(); err != nil {
		return nil, err
	}
	d := &Decoder{
		classes: classes,
		k:       classes.K(),
		byName:  map[string]event.Class{},
		signed:  classes.Signed(),
	}
	for k, name := range classes.Names {
		d.byName[name] = event.Class(k)
	}
	d.inner.outer = 1
	return d, nil
}

// SetZone sets the time zone of times in files without one, and resets the guesses.
func (d *Decoder) SetZone(zone *time.Location) {
	d.zone = zone
	d.guessed = Guesses{}
}

// Guesses counts the times of files that had to be interpreted.
type Guesses struct {
	// Unix times in milliseconds, microseconds or nanoseconds, and the first one
	Scaled      int
	ScaledFirst string
	// Unix times before 1973, which may be no seconds, and the first one
	Small      int
	SmallFirst string
	Zoned      int // times without a zone, read in the zone of SetZone
	Assumed    int // timestamps of typed files without a zone, read as UTC
}

// Guesses returns the counts so far.
func (d *Decoder) Guesses() Guesses { return d.guessed }

// Decode appends the events of a message to b, in their order, and its refused events to b.Refused;
// the others are applied. It returns
//   - nil if the message was read, whether or not events were refused;
//   - an error that matches ErrMalformed if the whole message is refused: b then has none of its
//     events, and one refusal.
//
// Decode does not set First, Last, Time, Emit and Checkpoint of b; the source does. The batch
// aliases m.Payload until it is reset.
func (d *Decoder) Decode(m Message, b *event.Batch) error {
	d.batch, d.before = b, b.Counts()
	p := d.decode(&m, b)
	if p == nil {
		return nil
	}
	b.Rollback(d.before)
	r := event.Refusal{
		Position: m.Position, Index: -1, Kind: m.Kind,
		Reason: p.Reason, Detail: p.Detail(), Original: m.Payload, ContentType: m.ContentType,
	}
	b.Refused = append(b.Refused, r)
	return fmt.Errorf("%w: at position %d (%v): %s: %s",
		ErrMalformed, r.Position, r.Kind, r.Reason, r.Detail)
}

// decode checks the envelope and passes the payload to the decoder of its form.
func (d *Decoder) decode(m *Message, b *event.Batch) *event.Problem {
	if p := checkVersion(m.Schema); p != nil {
		return p
	}
	if int(m.Kind) >= event.Kinds {
		return event.Problemf(event.UnknownKind, "no such event kind as %v", m.Kind)
	}
	if n := len(m.Payload); n > event.MessageBytesMax {
		return event.Problemf(event.TooLarge, "%d bytes, at most %d are allowed",
			n, event.MessageBytesMax)
	}
	if m.Checksum != "" {
		if p := verifyChecksum(m.Checksum, m.Payload); p != nil {
			return p
		}
	}
	form := mediaType(m.ContentType)
	if form == "" && bytes.HasPrefix(m.Payload, continuation) {
		form = Arrow
	}
	if p := checkForm(form, m.Payload); p != nil {
		return p
	}
	switch form {
	case JSON, "":
		return d.decodeJSON(m, b, form == "")
	case NDJSON:
		return d.decodeLines(m, b)
	case Arrow:
		return d.decodeArrow(m, b)
	}
	return event.Problemf(event.Malformed, "content type %s is not one of %s, %s, %s",
		Quote(m.ContentType), JSON, NDJSON, Arrow)
}

// eventsMax bounds the events of a message of a kind. A prediction or a post can take far more
// memory decoded than encoded, so with many classes the bound is lower.
func (d *Decoder) eventsMax(kind event.Kind) int {
	if kind.Predicts() {
		return min(event.EventsPerMessageLimit, event.UnitsPerMessageMax/d.k)
	}
	return event.EventsPerMessageLimit
}

// mediaType returns a content type without its parameters, in lower case.
func mediaType(s string) string {
	if s == JSON { // nearly always
		return s
	}
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

// Checksum returns the checksum header of a payload: its xxhash64 in 16 hexadecimal digits.
func Checksum(payload []byte) string { return fmt.Sprintf("%016x", xxhash.Sum64(payload)) }

// verifyChecksum compares a payload with the checksum of its header.
func verifyChecksum(header string, payload []byte) *event.Problem {
	want, err := strconv.ParseUint(header, 16, 64)
	if got := xxhash.Sum64(payload); err != nil || len(header) != 16 || got != want {
		return event.Problemf(event.Malformed,
			"checksum is %016x, the header says %s: the payload was damaged, or these are not 16 "+
				"hexadecimal digits",
			got, Quote(header))
	}
	return nil
}

// foreign lists the beginnings of other formats, and what they are.
var foreign = []struct{ begin, what string }{
	{"\xef\xbb\xbf", "a byte order mark is not allowed"},
	{string(continuation), "this is an Arrow stream, not JSON"},
	{"ARROW1", "this is an Arrow file, send the stream format"},
	{"PAR1", "this is Parquet, send JSON or an Arrow stream"},
	{"\x1f\x8b", "compressed payloads are not read"},         // gzip
	{"\x28\xb5\x2f\xfd", "compressed payloads are not read"}, // zstd
}

// checkForm refuses payloads that are obviously not in their declared form.
func checkForm(form string, payload []byte) *event.Problem {
	for _, other := range foreign {
		if bytes.HasPrefix(payload, []byte(other.begin)) &&
			(form != Arrow || other.begin != string(continuation)) {
			return event.Problemf(event.Malformed, "byte 0: %s", other.what)
		}
	}
	if len(payload) == 0 {
		return event.Problemf(event.Malformed, "empty message")
	}
	return nil
}

// ErrMalformed is matched by the error of a message that was refused whole. No event of the
// message is in the batch; the batch's last Refusal holds it.
var ErrMalformed = errors.New("message refused")

// checkVersion returns the problem of an unknown schema version; absent is version 1. The message
// is refused instead of stopping the run: otherwise any producer could end every run with one
// header. A later release that reads the version can retry it from the quarantine.
func checkVersion(version string) *event.Problem {
	if version == "" || version == schemaVersion {
		return nil
	}
	return event.Problemf(event.Malformed, "schema version %s, this release reads version %s",
		Quote(version), schemaVersion)
}

// detailTextBytesMax bounds quoted input in a detail.
const detailTextBytesMax = 48

// Quote is input within a detail: quoted and shortened.
type Quote string

func (input Quote) String() string {
	if len(input) <= detailTextBytesMax {
		return strconv.Quote(string(input))
	}
	return fmt.Sprintf("%q... (%d bytes)", string(input[:detailTextBytesMax]), len(input))
}

// nearest is advice that is computed only when it is read.
type nearest struct {
	name  string
	known []string
}

func (n nearest) String() string { return event.Nearest(n.name, n.known) }

// refuse appends the refusal of one event, or only counts it beyond RefusalsMax. original returns
// the event as JSON.
func (m *Message) refuse(b *event.Batch, index int, p *event.Problem, original func() []byte) {
	r := event.Refusal{Position: m.Position, Index: index, Kind: m.Kind, Reason: p.Reason}
	n := len(b.Refused)
	if m.RefusalsMax == 0 || n < m.RefusalsMax ||
		b.Refused[n-m.RefusalsMax].Position != m.Position {
		r.Detail, r.Original = p.Detail(), original()
	} else if last := &b.Refused[n-1]; last.Reason == p.Reason && last.Index+last.More+1 == index {
		last.More++
		return
	}
	b.Refused = append(b.Refused, r)
}

// bytesOf returns s as bytes that share its memory and must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// alias returns b as a string that shares its memory.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
