package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/request"
)

// headerRetry is a header of messages published again from the quarantine: position and index of
// the refused event.
const headerRetry = "Gqlstream-Retry"

// QuarantineFilter selects entries; its zero value selects those not retried.
type QuarantineFilter struct {
	Reason  event.Reason // empty: any
	Kind    string       // empty: any
	Retried bool         // also entries that were published again
	Newest  uint64       // look at this many of the stream's newest messages; 0: all
}

// Quarantine reads refused events and messages, and publishes them again.
type Quarantine struct {
	js     jetstream.JetStream
	names  broker.StreamNames
	stream jetstream.Stream
}

// OpenQuarantine returns the quarantine in names.
func OpenQuarantine(
	ctx context.Context,
	js jetstream.JetStream,
	names broker.StreamNames,
) (*Quarantine, error) {
	stream, err := js.Stream(ctx, names.Quarantine)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", names.Quarantine, err)
	}
	return &Quarantine{js: js, names: names, stream: stream}, nil
}

// subjects returns the prefix of the subjects of the entries.
func (q *Quarantine) subjects() string { return broker.QuarantineSubjects(q.names.Quarantine) }

// Discarded returns the number of deleted entries: the broker deletes the oldest to make space, and
// a purge deletes more.
func (q *Quarantine) Discarded() uint64 { return max(q.stream.CachedInfo().State.FirstSeq, 1) - 1 }

// List visits the entries that the filter selects, oldest first.
func (q *Quarantine) List(
	ctx context.Context,
	f QuarantineFilter,
	visit func(QuarantineEntry) error,
) error {
	retried, err := q.retried(ctx)
	if err != nil {
		return err
	}
	from := uint64(0)
	if last := q.stream.CachedInfo().State.LastSeq; f.Newest > 0 && last > f.Newest {
		from = last - f.Newest + 1
	}
	return q.each(ctx, q.subjects()+">", from, func(m request.Message) error {
		if m.Subject() == q.subjects()+quarantineRetried {
			return nil
		}
		e, err := quarantineEntry(m.Subject(), m.Sequence, time.Unix(0, m.Stamp), m.Headers(),
			m.Data())
		if err != nil {
			return err
		}
		e.Retried = retried[e.Sequence] > 0
		e.times = retried[e.Sequence]
		if (f.Reason == "" || f.Reason == e.Reason) && (f.Kind == "" || f.Kind == e.Kind) &&
			(f.Retried || !e.Retried) {
			return visit(e)
		}
		return nil
	})
}

// Entry returns the entry with a sequence of the quarantine.
func (q *Quarantine) Entry(ctx context.Context, sequence uint64) (QuarantineEntry, error) {
	m, err := q.stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) ||
		(err == nil && m.Subject == q.subjects()+quarantineRetried) {
		return QuarantineEntry{}, fmt.Errorf("no such entry in the quarantine: %d",
			sequence)
	}
	if err != nil {
		return QuarantineEntry{}, fmt.Errorf("quarantine entry %d: %w", sequence, err)
	}
	retried, err := q.retried(ctx)
	if err != nil {
		return QuarantineEntry{}, err
	}
	e, err := quarantineEntry(m.Subject, m.Sequence, m.Time, m.Header, m.Data)
	e.Retried, e.times = retried[sequence] > 0, retried[sequence]
	return q.whole(ctx, e), err
}

// whole returns an entry with its whole original, which for a long one is read from the log, if it
// is still there. An event refused out of a longer message is not completed.
func (q *Quarantine) whole(ctx context.Context, e QuarantineEntry) QuarantineEntry {
	if len(e.Original) == e.Bytes || e.Index >= 0 {
		return e
	}
	log, err := q.js.Stream(ctx, q.names.Log)
	if err == nil && broker.LogName(log) == e.Log {
		if m, err := log.GetMsg(ctx, uint64(e.Position)); err == nil {
			e.Original = m.Data
		}
	}
	return e
}

// Correction replaces parts of an entry that is published again. The zero value publishes the
// original.
type Correction struct {
	Payload     []byte // nil: the original
	ContentType string // of Payload; empty: detected from the payload
	Kind        string // empty: unchanged
}

// Retry publishes an entry again, at the end of the log, and marks it as retried. An old event then
// follows newer ones: if a newer event has replaced its assertion, the retry undoes that. If it is
// refused again, it becomes a new entry.
func (q *Quarantine) Retry(
	ctx context.Context,
	e QuarantineEntry,
	c Correction,
) (event.Position, error) {
	e = q.whole(ctx, e)
	payload, contentType := e.Original, e.ContentType
	if c.Payload != nil {
		payload, contentType = c.Payload, c.ContentType
	} else if len(payload) < e.Bytes {
		return 0, fmt.Errorf("retry entry %d: its %d bytes are not in the log any more, "+
			"or are those of one event of a message; give --file", e.Sequence, e.Bytes)
	}
	c.Kind = cmp.Or(c.Kind, e.Kind)
	kind, ok := event.ParseKind(c.Kind)
	if !ok {
		return 0, fmt.Errorf("retry entry %d: %q is no kind of event", e.Sequence, c.Kind)
	}
	place := fmt.Sprintf("%d/%d", e.Position, e.Index)
	m := &nats.Msg{Subject: broker.Subject(q.names.Log, kind), Header: nats.Header{}, Data: payload}
	m.Header.Set(wire.HeaderContentType, contentType)
	m.Header.Set(wire.HeaderChecksum, wire.Checksum(payload))
	m.Header.Set(headerRetry, place)
	m.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("retry/%s/%s/%d/%s/%016x",
		e.Log, place, e.times, c.Kind, xxhash.Sum64(payload)))
	ack, err := q.js.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("retry entry %d: %w", e.Sequence, broker.ExplainError(err))
	}
	return event.Position(ack.Sequence), q.markRetried(ctx, e, ack.Sequence)
}

// DropBefore deletes the entries of messages before a position in the log, and those of an earlier
// log, and makes the broker overwrite their bytes. It returns their number; with dry it only
// counts.
func (q *Quarantine) DropBefore(
	ctx context.Context,
	position event.Position,
	dry bool,
) (int, error) {
	log, err := q.js.Stream(ctx, q.names.Log)
	if err != nil {
		return 0, fmt.Errorf("stream %s: %w", q.names.Log, err)
	}
	name := broker.LogName(log)
	var older []uint64
	err = q.List(ctx, QuarantineFilter{Retried: true}, func(e QuarantineEntry) error {
		if e.Position < position || e.Log != name {
			older = append(older, e.Sequence)
		}
		return nil
	})
	if err != nil || dry {
		return len(older), err
	}
	for _, sequence := range older {
		err := q.stream.SecureDeleteMsg(ctx, sequence)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, fmt.Errorf("delete quarantine entry %d: %w", sequence, err)
		}
	}
	return len(older), nil
}

// markRetried records that an entry was published again. After a crash before this, the entry
// still counts as not retried; retrying it again is harmless, because events are assertions.
func (q *Quarantine) markRetried(ctx context.Context, e QuarantineEntry, again uint64) error {
	m := nats.NewMsg(q.subjects() + quarantineRetried)
	m.Header.Set(headerEntry, strconv.FormatUint(e.Sequence, 10))
	m.Header.Set(headerPosition, strconv.FormatUint(again, 10))
	if _, err := q.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("mark entry %d as retried: %w",
			e.Sequence, broker.ExplainError(err))
	}
	return nil
}

// retried returns how often entries were published again, by their sequences.
func (q *Quarantine) retried(ctx context.Context) (map[uint64]int, error) {
	set := map[uint64]int{}
	err := q.each(ctx, q.subjects()+quarantineRetried, 0, func(m request.Message) error {
		sequence, err := strconv.ParseUint(m.Headers().Get(headerEntry), 10, 64)
		set[sequence]++
		return err
	})
	return set, err
}

// each visits the present messages of some subjects, in order, from a sequence on.
func (q *Quarantine) each(
	ctx context.Context, subjects string, from uint64, visit func(request.Message) error,
) error {
	feed := request.Feed{JS: q.js, Stream: q.names.Quarantine, Subjects: []string{subjects}}
	err := feed.Each(ctx, max(from, 1)-1,
		func(m request.Message) (further bool, err error) { return true, visit(m) })
	if err != nil {
		return fmt.Errorf("stream %s: %w", q.names.Quarantine, err)
	}
	return nil
}
