package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/request"
)

// Last tokens of subjects, and headers, of the quarantine. Entries also have Content-Type, which is
// that of the original, and Nats-Msg-Id.
const (
	quarantineRetried = "retried" // of marks: an entry was published again
	quarantineUnknown = "unknown" // kind of a message whose subject names none

	headerReason   = "Gqlstream-Reason"
	headerDetail   = "Gqlstream-Detail"
	headerPosition = "Gqlstream-Position" // in the log
	headerIndex    = "Gqlstream-Index"    // of the event in its message, -1: the whole message
	headerLog      = "Gqlstream-Log"      // creation time of the log, Unix nanoseconds
	headerMore     = "Gqlstream-More"     // refusals after this one that have no entry
	headerEntry    = "Gqlstream-Entry"    // of a mark: the sequence of its entry
	headerBytes    = "Gqlstream-Bytes"    // of the original, if the entry has only its beginning
)

// Producers decide how much is refused. So the entries of a message and of a step, and the bytes of
// an entry, are bounded; further refusals are counted in the entry before them, and the log has all
// originals. Entries are stored in batches, which the broker syncs as one.
const (
	messageEntriesMax = 100
	stepEntriesMax    = request.BatchMessagesMax
	originalBytesMax  = 64 << 10
	batchBytesMax     = 8 << 20
)

// QuarantineWriter stores a copy of each refusal, once, even if a restart or another worker of a
// group repeats the same steps: the broker drops repeats within its window by their id, and the
// writer drops older ones, which are not after the newest stored entry. Write has one caller at a
// time.
type QuarantineWriter struct {
	js    jetstream.JetStream
	names broker.StreamNames
	log   string

	waiting chan []*nats.Msg // next entries, of whole steps

	leftOut atomic.Uint64 // refusals without an entry of their own, in the written steps

	tracker request.Tracker
	held    atomic.Bool // the owner is waiting
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
	ctx context.Context,
	nc *nats.Conn,
	names broker.StreamNames,
) (*QuarantineWriter, error) {
	w := &QuarantineWriter{names: names, waiting: make(chan []*nats.Msg, 1)}
	js, err := request.JetStream(nc, names.Domain)
	if err != nil {
		return nil, fmt.Errorf("quarantine: %w", err)
	}
	log, err := js.Stream(ctx, names.Log)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", names.Log, err)
	}
	w.js, w.log = js, broker.LogName(log)
	w.names.Replicas = cmp.Or(names.Replicas, log.CachedInfo().Config.Replicas)
	stream, err := js.Stream(ctx, names.Quarantine)
	if err == nil && !stream.CachedInfo().Config.AllowAtomicPublish { // an earlier version made it
		config := stream.CachedInfo().Config
		config.AllowAtomicPublish = true
		_, err = js.UpdateStream(ctx, config)
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", names.Quarantine, err)
	}
	return w, nil
}

// Write passes the refusals of one step, in any order, to Run. Call it once a step, in the order of
// steps. It waits while more than a batch is waiting, as long as it takes if the broker is away;
// see State.
func (w *QuarantineWriter) Write(ctx context.Context, refusals []event.Refusal) error {
	kept := boundEntries(refusals)
	w.leftOut.Add(uint64(event.CountRefused(refusals) - len(kept)))
	var next, before []*nats.Msg
	for _, e := range kept {
		next = append(next, w.message(e))
	}
	if len(next) == 0 {
		return nil
	}
	select {
	case before = <-w.waiting: // Run has not taken them yet
	default:
	}
	if together := append(before, next...); fitting(together) == len(together) {
		next = together
	} else if err := w.storeEntries(ctx, before); err != nil {
		return err
	}
	return w.storeEntries(ctx, next)
}

// Settle waits until everything given to Write is on the broker's disk. Call it before recording a
// step as done: refusals after the recorded step are written again after a crash, and stored once.
func (w *QuarantineWriter) Settle(ctx context.Context) error {
	if err := w.storeEntries(ctx, nil); err != nil {
		return err
	}
	return w.storeEntries(ctx, nil) // Run takes this only after everything before
}

// storeEntries passes entries to Run. Where there is room it does so even if ctx has ended: Write
// may have taken entries of earlier steps back, which nobody writes again.
func (w *QuarantineWriter) storeEntries(ctx context.Context, entries []*nats.Msg) error {
	select {
	case w.waiting <- entries:
		return nil
	default:
	}
	w.held.Store(true)
	defer w.held.Store(false)
	select {
	case w.waiting <- entries:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run stores the refusals of Write until ctx ends or the broker refuses for good. If the broker is
// slow it stores several steps in one batch. After an error some entries may be stored; a restart
// writes all of them again.
func (w *QuarantineWriter) Run(ctx context.Context) error {
	for {
		select {
		case entries := <-w.waiting:
			if err := w.store(ctx, entries); err != nil {
				return fmt.Errorf("write to the quarantine: %w", broker.ExplainError(err))
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *QuarantineWriter) store(ctx context.Context, entries []*nats.Msg) error {
	err := request.Retry(
		ctx,
		w.js.Conn(),
		func() error { return w.write(ctx, entries) },
		func(err error) {
			w.tracker.Failed(broker.ExplainError(err), w.held.Load())
		},
	)
	if err == nil {
		w.tracker.Works()
	}
	return err
}

// State reports whether the broker takes entries. Any goroutine may call it.
func (w *QuarantineWriter) State() request.State { return w.tracker.State(w.names.Quarantine) }

// fitting returns how many of the messages go into one batch: at least one, if there are any.
func fitting(messages []*nats.Msg) int {
	bytes := 0
	for i, m := range messages {
		if bytes += len(m.Data); i == request.BatchMessagesMax || i > 0 && bytes > batchBytesMax {
			return i
		}
	}
	return len(messages)
}

// write stores the entries that are not stored yet.
func (w *QuarantineWriter) write(ctx context.Context, entries []*nats.Msg) error {
	if len(entries) == 0 {
		return nil // a call of Settle
	}
	messages, err := w.missing(ctx, entries)
	for most := request.BatchMessagesMax; len(messages) > 0 && err == nil; {
		n := min(fitting(messages), most)
		_, err = request.Batch(ctx, w.js.Conn(), messages[:n])
		if err != nil && n > 1 &&
			!request.Passes(
				// some are stored, by a second worker for example: the broker drops these one by
				// one
				err) {
			most = 1
			messages, err = w.missing(ctx, entries)
			continue
		}
		messages = messages[n:]
	}
	return err
}

// missing returns copies of the entries after the newest stored one of their subject. It creates
// the stream if it was deleted. It looks every time: the broker forgets ids after a while, and
// another worker of a group may be further ahead than that.
func (w *QuarantineWriter) missing(
	ctx context.Context,
	entries []*nats.Msg,
) (messages []*nats.Msg, err error) {
	stream, err := w.js.Stream(ctx, w.names.Quarantine)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err = broker.EnsureStreams(ctx, w.js, w.names); err == nil {
			stream, err = w.js.Stream(ctx, w.names.Quarantine)
		}
	}
	if err != nil {
		return nil, err
	}
	newest := map[string]place{}
	for _, m := range entries {
		e, err := quarantineEntry(m.Subject, 0, time.Time{}, m.Header, nil)
		if err != nil {
			return nil, err
		}
		last, known := newest[m.Subject]
		if !known {
			if last, err = w.newest(ctx, stream, m.Subject); err != nil {
				return nil, err
			}
			newest[m.Subject] = last
		}
		if (place{e.Position, e.Index}).compare(last) > 0 { // sending it in a batch adds headers
			messages = append(messages,
				&nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data})
		}
	}
	return messages, nil
}

// newest returns the place of the newest entry of a subject; before all others if the log has no
// entry.
func (w *QuarantineWriter) newest(
	ctx context.Context,
	s jetstream.Stream,
	subject string,
) (place, error) {
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return place{}, nil
	}
	if err != nil {
		return place{}, fmt.Errorf("stream %s: last of %s: %w",
			w.names.Quarantine, subject, err)
	}
	e, err := quarantineEntry(m.Subject, m.Sequence, m.Time, m.Header, nil)
	if err != nil || e.Log != w.log { // not an entry of this log
		return place{}, nil
	}
	return place{e.Position, e.Index}, nil
}

// boundEntries returns the refusals of a step that get entries, in log order. Each counts the
// refusals after it that get none.
func boundEntries(refusals []event.Refusal) (kept []event.Refusal) {
	inOrder := func(a, b event.Refusal) int {
		return place{a.Position, a.Index}.compare(place{b.Position, b.Index})
	}
	if !slices.IsSortedFunc(refusals, inOrder) { // the decoder's are sorted, and can be many
		refusals = slices.Clone(refusals)
		slices.SortStableFunc(refusals, inOrder)
	}
	ofMessage := 0
	for i, r := range refusals {
		if i > 0 && r.Position != refusals[i-1].Position {
			ofMessage = 0
		}
		if ofMessage++; ofMessage <= messageEntriesMax && len(kept) < stepEntriesMax {
			kept = append(kept, r)
		} else {
			kept[len(kept)-1].More += 1 + r.More
		}
	}
	return kept
}

// LeftOut returns the number of refusals without an entry of their own.
func (w *QuarantineWriter) LeftOut() uint64 { return w.leftOut.Load() }

func (w *QuarantineWriter) message(r event.Refusal) *nats.Msg {
	if r.Index >= 0 {
		r.ContentType = wire.JSON
	}
	position := strconv.FormatUint(uint64(r.Position), 10)
	index := strconv.Itoa(r.Index)
	m := nats.NewMsg(w.subject(r.Kind))
	m.Header.Set(headerReason, string(r.Reason))
	m.Header.Set(headerDetail, headerText(r.Detail))
	m.Header.Set(headerPosition, position)
	m.Header.Set(headerIndex, index)
	m.Header.Set(headerLog, w.log)
	if r.More > 0 {
		m.Header.Set(headerMore, strconv.Itoa(r.More))
	}
	if r.ContentType != "" {
		m.Header.Set(wire.HeaderContentType, headerText(r.ContentType))
	}
	m.Header.Set(jetstream.MsgIDHeader, w.log+"/"+position+"/"+index)
	m.Data = bytes.Clone(
		r.Original[:min(len(r.Original), originalBytesMax)]) // valid until the next step
	if len(r.Original) > originalBytesMax {
		m.Header.Set(headerBytes, strconv.Itoa(len(r.Original)))
	}
	return m
}

func (w *QuarantineWriter) subject(k event.Kind) string {
	prefix := broker.QuarantineSubjects(w.names.Quarantine)
	if int(k) >= event.Kinds {
		return prefix + quarantineUnknown
	}
	return prefix + k.String()
}

// headerText makes text fit for a header: valid, one line, not long.
func headerText(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), 1024)], "?")
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
	times       int            // it was
	More        int            `json:"more,omitempty"` // refusals after it that have no entry
	// of the original, of which a long one is only in the log
	Bytes    int    `json:"bytes"`
	Log      string `json:"log"` // creation time of the log, Unix nanoseconds
	Original []byte `json:"-"`
}

func quarantineEntry(
	subject string, sequence uint64, at time.Time, h nats.Header, original []byte,
) (QuarantineEntry, error) {
	position, err1 := strconv.ParseUint(h.Get(headerPosition), 10, 64)
	index, err2 := strconv.Atoi(h.Get(headerIndex))
	more, err3 := strconv.Atoi(cmp.Or(h.Get(headerMore), "0"))
	bytes, err4 := strconv.Atoi(cmp.Or(h.Get(headerBytes), strconv.Itoa(len(original))))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return QuarantineEntry{}, fmt.Errorf("quarantine entry %d: %w", sequence, err)
	}
	return QuarantineEntry{
		Sequence: sequence, Kind: subject[strings.LastIndexByte(subject, '.')+1:],
		Reason: event.Reason(h.Get(headerReason)), Detail: h.Get(headerDetail),
		Position: event.Position(position), Index: index, Log: h.Get(headerLog),
		ContentType: h.Get(wire.HeaderContentType), Time: at.UTC(), Bytes: bytes,
		Original: original, More: more,
	}, nil
}
