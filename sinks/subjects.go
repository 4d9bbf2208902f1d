package sinks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Limits of a subjects writer.
const (
	writePendingMax   = 512
	writeAckWaitMax   = 15 * time.Second
	writeRetryWaitMin = 50 * time.Millisecond
	writeRetryWaitMax = 2 * time.Second
)

// Headers of a record.
const (
	headerPosition = "Gqlstream-Position"
	headerOrdinal  = "Gqlstream-Ordinal" // among the records of the subject at the position
	headerLog      = "Gqlstream-Log"
)

// ErrOtherWriter is what an error matches when someone else publishes estimates of
// the same communities. What was not stored by then is not in the stream.
var ErrOtherWriter = errors.New("another instance publishes the same estimates; stop one of the two," +
	" or give them streams of their own")

// place orders the records of a subject.
type place struct {
	position uint64
	ordinal  int
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.position, q.position), cmp.Compare(p.ordinal, q.ordinal))
}

// record is one message to store.
type record struct {
	subject string
	place   place
	data    []byte
	id      string // for the broker to drop repeats; may be empty
}

// newest is what is known of the last message of a subject.
type newest struct {
	sequence uint64 // 0: there is none
	place    place
	data     []byte // only when just read
}

type subjectsConfig struct {
	stream      string
	log         string
	retryFor    time.Duration
	everyRecord bool // a record that came second is an error, not merely out of date
}

// subjects writes records so that those of a subject have increasing places and
// none is stored twice, by compare-and-set on the sequence of the subject's last
// message. What is stored already is left out.
type subjects struct {
	config subjectsConfig
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	known  map[string]newest

	acked      ackedRecord // the newest
	reconnects uint64      // of nc, when the broker was known to have that

	tracker Tracker
}

func newSubjects(nc *nats.Conn, c subjectsConfig) (*subjects, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(writePendingMax+1),
		jetstream.WithPublishAsyncTimeout(writeAckWaitMax))
	if err != nil {
		return nil, fmt.Errorf("sinks: stream %s: %w", c.stream, err)
	}
	return &subjects{config: c, nc: nc, js: js, known: map[string]newest{}, reconnects: nc.Stats().Reconnects}, nil
}

func (s *subjects) close() { s.js.CleanupPublisher() }

// write stores records, which are in the order of their places within a subject.
// Records of different subjects are under way together; those of one subject
// follow one another.
func (s *subjects) write(ctx context.Context, records []record) error {
	defer s.tracker.Release()
	begun := time.Now()
	for wait := writeRetryWaitMin; ; wait = min(2*wait, writeRetryWaitMax) {
		left, err := records, s.kept(ctx)
		if err == nil {
			left, err = s.round(ctx, records)
		}
		if err == nil {
			s.tracker.Works()
			if len(left) == 0 {
				return nil
			}
			records, wait = left, writeRetryWaitMin
			continue
		}
		if !transient(err) || ctx.Err() != nil || s.config.retryFor < 0 ||
			s.config.retryFor > 0 && time.Since(begun) >= s.config.retryFor {
			return fmt.Errorf("sinks: stream %s: %w", s.config.stream, err)
		}
		s.tracker.Failed(err, true)
		clear(s.known) // what was stored in spite of the error must be read
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("sinks: stream %s: %w", s.config.stream, err)
		}
		records = left
	}
}

// round sends one record of each subject and waits for the answers. It returns the
// records that are still to be stored.
func (s *subjects) round(ctx context.Context, records []record) (left []record, err error) {
	sent := map[string]bool{}
	var pending []pendingRecord
	for i, r := range records {
		if sent[r.subject] {
			left = append(left, r)
			continue
		}
		last, err := s.lookUp(ctx, r.subject)
		if err != nil {
			return append(left, records[i:]...), errors.Join(err, s.settle(ctx, &left, pending))
		}
		if last.sequence > 0 && r.place.compare(last.place) <= 0 {
			continue
		}
		future, err := s.js.PublishMsgAsync(s.message(r, last.sequence))
		if err != nil {
			return append(left, records[i:]...), errors.Join(err, s.settle(ctx, &left, pending))
		}
		sent[r.subject] = true
		pending = append(pending, pendingRecord{r, future})
		if len(pending) == writePendingMax {
			if err := s.settle(ctx, &left, pending); err != nil {
				return append(left, records[i+1:]...), err
			}
			pending = pending[:0]
		}
	}
	err = s.settle(ctx, &left, pending)
	slices.SortStableFunc(left, func(a, b record) int { return a.place.compare(b.place) })
	return left, err
}

type pendingRecord struct {
	record
	future jetstream.PubAckFuture
}

// settle waits for the answers to pending records. Those that must be sent again
// are put in front of left. Its error is the first one, after all have answered.
func (s *subjects) settle(ctx context.Context, left *[]record, pending []pendingRecord) error {
	var first error
	var again []record
	for _, p := range pending {
		err := s.answer(ctx, p)
		if err != nil {
			again = append(again, p.record)
		}
		if errors.Is(err, errSendAgain) {
			err = nil
		}
		if first == nil {
			first = err
		}
	}
	*left = append(again, *left...)
	return first
}

// errSendAgain says that a record was not stored because the subject's last
// message is another one than was known, which is known now.
var errSendAgain = errors.New("sinks: send again")

func (s *subjects) answer(ctx context.Context, p pendingRecord) error {
	select {
	case ack := <-p.future.Ok():
		s.known[p.subject] = newest{sequence: ack.Sequence, place: p.place}
		s.noteAcked(p.record, ack.Sequence)
		return nil
	case err := <-p.future.Err():
		if wrongSequence(err) {
			return s.reconcile(ctx, p.record)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reconcile decides what to do about a record whose subject has changed meanwhile.
func (s *subjects) reconcile(ctx context.Context, r record) error {
	before := s.known[r.subject]
	delete(s.known, r.subject)
	now, err := s.lookUp(ctx, r.subject)
	if err != nil {
		return err
	}
	stale := now.sequence > 0 && r.place.compare(now.place) <= 0
	switch {
	case stale && (!s.config.everyRecord || bytes.Equal(now.data, r.data)):
		return nil // overtaken, or stored by an earlier try
	case s.config.everyRecord && now.sequence > before.sequence:
		return fmt.Errorf("%s has a record of position %d: %w", r.subject, now.place.position, ErrOtherWriter)
	}
	return errSendAgain
}

// lookUp returns the last message of a subject, from the broker the first time.
func (s *subjects) lookUp(ctx context.Context, subject string) (newest, error) {
	if last, ok := s.known[subject]; ok {
		return last, nil
	}
	if s.stream == nil {
		stream, err := s.js.Stream(ctx, s.config.stream)
		if err != nil {
			return newest{}, err
		}
		s.stream = stream
	}
	var last newest
	m, err := s.stream.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
	case err != nil:
		return newest{}, err
	default:
		last = newest{sequence: m.Sequence, data: m.Data}
		if m.Header.Get(headerLog) == s.config.log {
			last.place.position, _ = strconv.ParseUint(m.Header.Get(headerPosition), 10, 64)
			last.place.ordinal, _ = strconv.Atoi(m.Header.Get(headerOrdinal))
		}
	}
	s.known[subject] = newest{sequence: last.sequence, place: last.place}
	return last, nil
}

func (s *subjects) message(r record, after uint64) *nats.Msg {
	m := nats.NewMsg(r.subject)
	m.Header.Set("Content-Type", "application/json")
	m.Header.Set(headerPosition, strconv.FormatUint(r.place.position, 10))
	m.Header.Set(headerOrdinal, strconv.Itoa(r.place.ordinal))
	m.Header.Set(headerLog, s.config.log)
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(after, 10))
	if r.id != "" {
		m.Header.Set(jetstream.MsgIDHeader, s.config.log+"|"+r.id)
	}
	m.Data = r.data
	return m
}

func wrongSequence(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// codeAccountFull is what a broker answers when an account has used its share.
const codeAccountFull jetstream.ErrorCode = 10002

// transient reports whether an error can pass by itself: the broker is away, or
// cannot store anything now, for want of space say.
func transient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.Code >= 500 || api.ErrorCode == codeAccountFull) {
		return true
	}
	for _, t := range []error{
		jetstream.ErrNoStreamResponse, nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected,
		jetstream.ErrAsyncPublishTimeout, nats.ErrReconnectBufExceeded, context.DeadlineExceeded,
		jetstream.ErrJetStreamNotEnabled,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
