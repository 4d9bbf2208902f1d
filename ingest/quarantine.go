package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// Subjects and headers of the quarantine, besides Content-Type, which is that of
// the original, and Nats-Msg-Id.
const (
	quarantinePrefix  = "gqlq."
	quarantineRetried = quarantinePrefix + "retried" // marks: an entry was published again
	quarantineUnknown = "unknown"                    // the kind of a message without one

	headerReason   = "Gqlstream-Reason"
	headerDetail   = "Gqlstream-Detail"
	headerPosition = "Gqlstream-Position" // in the log
	headerIndex    = "Gqlstream-Index"    // of the event in its message, -1: all of it
	headerLog      = "Gqlstream-Log"      // creation time of the log, Unix nanoseconds
	headerEntry    = "Gqlstream-Entry"    // of a mark: the sequence of its entry
)

// QuarantineWriter keeps copies of what was refused, each once, even when a
// restart goes through the same steps again: repeats within the broker's window
// are dropped by their id, and older ones because they are not after the newest
// entry that was there at the start. It has one owner.
type QuarantineWriter struct {
	sender *sender
	stream string
	log    string
	newest map[string]place // at the start, by subject
}

// place orders refusals.
type place struct {
	position event.Position
	index    int
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.position, q.position), cmp.Compare(p.index, q.index))
}

// NewQuarantineWriter returns a writer for refusals of the log in names.
func NewQuarantineWriter(
	ctx context.Context, nc *nats.Conn, names StreamNames,
) (*QuarantineWriter, error) {
	sender, err := newSender(nc, senderConfig{who: "write to the quarantine"})
	if err != nil {
		return nil, err
	}
	js := sender.js
	log, err := js.Stream(ctx, names.Log)
	if err != nil {
		return nil, fmt.Errorf("ingest: stream %s: %w", names.Log, err)
	}
	stream, err := js.Stream(ctx, names.Quarantine)
	if err != nil {
		return nil, fmt.Errorf("ingest: stream %s: %w", names.Quarantine, err)
	}
	w := &QuarantineWriter{
		sender: sender, stream: names.Quarantine, newest: map[string]place{},
		log: logName(log.CachedInfo().Created),
	}
	for kind := range event.Kinds + 1 {
		if err := w.lookUp(ctx, stream, quarantineSubject(event.Kind(kind))); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// logName tells a log from one that was there before, by its creation time.
func logName(created time.Time) string { return strconv.FormatInt(created.UnixNano(), 10) }

// lookUp finds the newest entry of a subject, if it is of this log.
func (w *QuarantineWriter) lookUp(ctx context.Context, s jetstream.Stream, subject string) error {
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ingest: stream %s: last of %s: %w", w.stream, subject, err)
	}
	entry, err := quarantineEntry(m.Subject, m.Sequence, m.Time, m.Header, nil)
	if err == nil && entry.Log == w.log {
		w.newest[subject] = place{entry.Position, entry.Index}
	}
	return nil
}

// Write stores all refusals of one step, in any order, and returns when they are
// on the broker's disk. Call it once a step, before the step is recorded as done:
// it relies on the order of steps. An error leaves some stored; write all again.
func (w *QuarantineWriter) Write(ctx context.Context, refusals []event.Refusal) error {
	refusals = slices.Clone(refusals)
	slices.SortStableFunc(refusals, func(a, b event.Refusal) int {
		return place{a.Position, a.Index}.compare(place{b.Position, b.Index})
	})
	for _, r := range refusals {
		newest, ok := w.newest[quarantineSubject(r.Kind)]
		if ok && (place{r.Position, r.Index}).compare(newest) <= 0 {
			continue
		}
		if err := w.sender.send(ctx, w.message(r)); err != nil {
			return err
		}
	}
	return w.sender.flush(ctx)
}

// Stored returns how many entries this writer has stored. Any entry that another
// run had stored before counts as well, if it was sent to the broker again.
func (w *QuarantineWriter) Stored() uint64 { return w.sender.stored }

// Close frees what the writer holds of the connection.
func (w *QuarantineWriter) Close() { w.sender.close() }

func (w *QuarantineWriter) message(r event.Refusal) *nats.Msg {
	contentType := r.ContentType
	if r.Index >= 0 {
		contentType = event.JSON
	}
	position := strconv.FormatUint(uint64(r.Position), 10)
	index := strconv.Itoa(r.Index)
	m := nats.NewMsg(quarantineSubject(r.Kind))
	m.Header.Set(headerReason, string(r.Reason))
	m.Header.Set(headerDetail, headerText(r.Detail))
	m.Header.Set(headerPosition, position)
	m.Header.Set(headerIndex, index)
	m.Header.Set(headerLog, w.log)
	if contentType != "" {
		m.Header.Set(event.HeaderContentType, headerText(contentType))
	}
	m.Header.Set(jetstream.MsgIDHeader, w.log+"/"+position+"/"+index)
	m.Data = r.Original
	return m
}

func quarantineSubject(k event.Kind) string {
	if int(k) >= event.Kinds {
		return quarantinePrefix + quarantineUnknown
	}
	return quarantinePrefix + k.String()
}

// headerText makes text fit for a header: valid, one line, not long.
func headerText(text string) string {
	const textBytesMax = 1024
	text = strings.ToValidUTF8(text[:min(len(text), textBytesMax)], "?")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// QuarantineEntry is one refused message, or event of a message.
type QuarantineEntry struct {
	Sequence    uint64         `json:"entry"` // in the quarantine
	Kind        string         `json:"kind"`
	Reason      event.Reason   `json:"reason"`
	Detail      string         `json:"detail"`
	Position    event.Position `json:"position"` // in the log
	Index       int            `json:"index"`    // of the event in its message, -1: all of it
	ContentType string         `json:"content_type,omitempty"`
	Time        time.Time      `json:"time"` // when it was quarantined
	Retried     bool           `json:"retried,omitempty"`
	Bytes       int            `json:"bytes"`
	Log         string         `json:"log"` // creation time of the log, Unix nanoseconds
	Original    []byte         `json:"-"`
}

func quarantineEntry(
	subject string, sequence uint64, at time.Time, h nats.Header, original []byte,
) (QuarantineEntry, error) {
	position, err1 := strconv.ParseUint(h.Get(headerPosition), 10, 64)
	index, err2 := strconv.Atoi(h.Get(headerIndex))
	if err := errors.Join(err1, err2); err != nil {
		return QuarantineEntry{}, fmt.Errorf("ingest: quarantine entry %d: %w", sequence, err)
	}
	return QuarantineEntry{
		Sequence: sequence, Kind: strings.TrimPrefix(subject, quarantinePrefix),
		Reason: event.Reason(h.Get(headerReason)), Detail: h.Get(headerDetail),
		Position: event.Position(position), Index: index, Log: h.Get(headerLog),
		ContentType: h.Get(event.HeaderContentType), Time: at.UTC(), Bytes: len(original),
		Original: original,
	}, nil
}
