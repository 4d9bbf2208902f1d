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

// The schema of the wire forms in this package, and where Arrow tables say it.
const (
	schemaVersion    = "1"
	schemaVersionKey = "gqlstream.schema"
)

// Message is one message as it comes from the stream.
type Message struct {
	Kind        event.Kind     // from the subject
	ContentType string         // "" is looked up in the payload
	Schema      string         // schema version; "" is version 1
	Checksum    string         // see Checksum; "" is not verified
	Payload     []byte         // not changed, and aliased by the batch
	Position    event.Position // given to every event of the message
	Received    event.Time     // the time of events that give none
	RefusalsMax int            // of its events that are kept, further ones are counted; 0: all
	SaysKind    bool           // events have a member "kind" besides, as the lines of a log do

	Late event.LatePolicy // of events whose own time is far behind Now
	Now  event.Time       // the log's time when the message comes; 0: there is none

	TimeMax event.Time // events whose own time is later are refused as Ahead; 0: none is
}

// Decoder reads messages into batches. It keeps scratch memory, so it has one
// owner at a time. Build with NewDecoder.
type Decoder struct {
	classes event.ClassSet
	k       int // number of classes
	byName  map[string]event.Class
	signed  bool           // a class is called by a negative number; see ClassSet.Signed
	zone    *time.Location // of times in files that have none; nil: they are refused
	guessed Guesses

	batch         *event.Batch // that events are appended to
	before        event.Mark   // what it held before the message
	json          jsonReader   // of the JSON message at hand
	inner         jsonReader   // of an object inside of an event
	cell, value   Cell         // of the event, and of an object inside of it
	table         table        // the Arrow message at hand
	record        record       // the event at hand
	probabilities []float64    // backing of the lists of a row
}

// NewDecoder returns a decoder, or an error that lists all that is wrong with the classes.
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

// SetZone names the time zone of times in files that have none, and forgets what was guessed.
func (d *Decoder) SetZone(zone *time.Location) {
	d.zone = zone
	d.guessed = Guesses{}
}

// Guesses counts the times of files that had to be interpreted.
type Guesses struct {
	// Unix times that are too large for seconds: milliseconds, microseconds or nanoseconds
	Scaled  int
	Zoned   int // times without a zone that are read in the zone of SetZone
	Assumed int // timestamps of typed files without a zone that are read as UTC
}

// Guesses returns the counts so far.
func (d *Decoder) Guesses() Guesses { return d.guessed }

// Decode appends the events of a message to b, in their order, and to b.Refused
// those that are refused, with the rest of the message applied. It returns
//   - nil when the message was read, whether or not events of it were refused;
//   - an error that matches ErrMalformed when the message is
//     refused whole: b has no event of it, and its refusal in b.Refused.
//
// Decode leaves First, Last, Time, Emit and Checkpoint of b to the source. The
// batch aliases m.Payload until it is reset.
func (d *Decoder) Decode(m Message, b *event.Batch) error {
	d.batch, d.before = b, b.Mark()
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

// decode checks the envelope and hands the payload to the decoder of its form.
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
	return event.Problemf(event.Malformed, "content type %s is none of %s, %s, %s",
		Quote(m.ContentType), JSON, NDJSON, Arrow)
}

// eventsMax bounds the events of a message of a kind. A prediction or a post can take far
// more room decoded than encoded, so with many classes there may be fewer.
func (d *Decoder) eventsMax(kind event.Kind) int {
	if kind.Predicts() {
		return min(event.EventsPerMessageLimit, event.UnitsPerMessageMax/d.k)
	}
	return event.EventsPerMessageLimit
}

// mediaType returns a content type without its parameters, in lower case.
func mediaType(s string) string {
	if s == JSON { // as nearly all are
		return s
	}
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

// Checksum returns the checksum of a payload as it stands in its header: its
// xxhash64 in 16 hexadecimal digits.
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

// foreign is how payloads begin that are something else, and what they are.
var foreign = []struct{ begin, what string }{
	{"\xef\xbb\xbf", "a byte order mark is not allowed"},
	{string(continuation), "this is an Arrow stream, not JSON"},
	{"ARROW1", "this is an Arrow file, send the stream format"},
	{"PAR1", "this is Parquet, send JSON or an Arrow stream"},
	{"\x1f\x8b", "compressed payloads are not read"},         // gzip
	{"\x28\xb5\x2f\xfd", "compressed payloads are not read"}, // zstd
}

// checkForm refuses payloads that are plainly not what they are said to be.
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
var ErrMalformed = errors.New("event: message refused")

// checkVersion returns what is wrong with a schema version; absent is version 1. A message in
// another one is refused and not waited for: whoever may publish could else end every run by one
// header. A release that reads it can retry it from the quarantine.
func checkVersion(version string) *event.Problem {
	if version == "" || version == schemaVersion {
		return nil
	}
	return event.Problemf(event.Malformed, "schema version %s, this release reads version %s",
		Quote(version), schemaVersion)
}

// detailTextBytesMax bounds the input that is quoted in a detail.
const detailTextBytesMax = 48

// Quote is input that stands in a detail: quoted and not long.
type Quote string

func (input Quote) String() string {
	if len(input) <= detailTextBytesMax {
		return strconv.Quote(string(input))
	}
	return fmt.Sprintf("%q... (%d bytes)", string(input[:detailTextBytesMax]), len(input))
}

// nearest is advice that is only looked for when it is read.
type nearest struct {
	name  string
	known []string
}

func (n nearest) String() string { return event.Nearest(n.name, n.known) }

// refuse appends the refusal of one event, or counts it where the message has RefusalsMax.
// original returns the event as JSON.
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
