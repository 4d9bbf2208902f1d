package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

// WriterConfig names the shard, the log and the process of a writer.
type WriterConfig struct {
	Streams StreamsConfig
	Shard   int
	Shards  int // of the group; 0: 1
	Writer  Identity
	Config  string // digest of the configuration
	Classes []string
	Log     string // identity of the input log

	// Needed returns the follower that has taken least and the sequence that it has
	// taken. Nothing is published that would make the broker discard messages which that
	// follower still needs. Nil: the writer never waits.
	Needed func() (follower string, taken uint64)

	// Awaited returns the newest position with published records of any shard, so that readers wait
	// for the others to be complete up to there. Nil: it is not known, and the watermark always
	// moves.
	Awaited func() uint64
}

// Writer publishes the emissions of one shard to the output log, each once and in order, even if
// other writers do the same. A second writer with the same configuration and the same log is a
// standby: one of the two stores each emission. It has one owner; any goroutine may call State.
type Writer struct {
	config WriterConfig
	nc     *nats.Conn
	js     jetstream.JetStream

	// the last one of the shard as far as this writer knows; its Part is how many parts of the
	// position are stored
	known   Mark
	beats   Heartbeats
	passed  Emission  // the newest that Admit was asked about, without its records
	free    int64     // bytes that the stream takes, before anything is discarded; at least
	renewed time.Time // when a mark was last stored or found
	audited time.Time // when the broker was last asked about its content
	ensured time.Time // when the streams were last looked after
	tracker request.Tracker
	end     atomic.Uint64 // the last sequence that the broker is known to have had; 0: none
}

// NewWriter returns a writer that continues after the last mark of its shard. It creates missing
// streams, and refuses to start while another configuration is being published.
func NewWriter(ctx context.Context, js jetstream.JetStream, c WriterConfig) (*Writer, error) {
	w := &Writer{config: c, nc: js.Conn(), js: js}
	if err := ensureStreams(ctx, w.js, c.Streams); err != nil {
		return nil, err // which names the stream
	}
	if err := w.open(ctx); err != nil {
		return nil, fmt.Errorf("stream %s: %w", c.Streams.Names.Estimates, err)
	}
	return w, nil
}

func (w *Writer) open(ctx context.Context) error {
	w.ensured = time.Now()
	found, err := lastMark(ctx, w.js, w.config.Streams.Names, w.config.Shard, Mark{})
	if err != nil {
		return err
	}
	if err := w.refuse(&found); err != nil {
		return err
	}
	w.adopt(found)
	return nil
}

// refuse returns an error if the last mark is that of another configuration, or of another log, and
// its writer has shown that it lives less than a minute ago.
func (w *Writer) refuse(found *Mark) error {
	m := &found.shardMark
	if found.Sequence == 0 || m.Closed || w.sameWork(m) || found.age > markFreshMax {
		return nil
	}
	return w.otherWriter(m, found.age)
}

// sameWork reports whether a mark is of the same configuration and log.
func (w *Writer) sameWork(m *shardMark) bool {
	return m.Config == w.config.Config && m.Log == w.config.Log &&
		(len(m.Classes) == 0 || slices.Equal(m.Classes, w.config.Classes))
}

// Before returns the configuration and the classes of the last publication of this log, or nothing.
func (w *Writer) Before() (config string, classes []string) {
	return w.known.Config, w.known.Classes
}

func (w *Writer) otherWriter(m *shardMark, age time.Duration) error {
	what := fmt.Sprintf("configuration %s, classes %q", m.Config, m.Classes)
	if m.Log != w.config.Log {
		what = "log " + m.Log
	}
	return fmt.Errorf(
		"another run publishes here: host %s, process %d, with the %s since %s; its last sign of "+
			"life"+
			" was %v ago: %w",
		m.Writer.Host,
		m.Writer.PID,
		what,
		m.Writer.Since.UTC().Format(time.RFC3339),
		age.Round(time.Second),
		errOtherWriter,
	)
}

// adopt accepts a mark as the last one. If it is of another log only its sequence counts, and parts
// of another configuration cannot be completed.
func (w *Writer) adopt(found Mark) {
	w.known = Mark{Sequence: found.Sequence}
	w.renewed = time.Now().Add(-found.age)
	if found.Log != w.config.Log {
		return
	}
	w.known = found
	w.beats.last = max(w.beats.last,
		found.nanoseconds()) // later emissions may have been found due already
	w.beats.active = max(w.beats.active, found.Active)
	switch {
	case found.Config != w.config.Config && (found.torn || found.Part < found.Parts):
		w.known.Part = 0
	case found.torn:
		w.known.Part--
	default:
		w.end.Store(max(w.Sequence(), found.Sequence+uint64(found.Records)))
	}
}

// Published returns the watermark: emissions at or before it are stored, and Store
// leaves them out.
func (w *Writer) Published() uint64 { return w.known.complete() }

// Sequence returns the sequence of the newest message of the output log that this writer knows.
// A follower that has taken it has taken everything published. Any goroutine may ask.
func (w *Writer) Sequence() uint64 { return w.end.Load() }

// Admit moves the writer on to an emission, and reports whether the emission must be stored: not if
// it is stored already, nor if it has no records and comes less than a second of log time after a
// mark. Call it once for each position, in order.
func (w *Writer) Admit(e *Emission) bool {
	w.passed = Emission{Position: e.Position, Digest: e.Digest}
	due := e.Position > w.Published() && w.beats.Publishes(e)
	e.Active = w.beats.active
	return due
}

// Store stores a due emission and returns when the broker has acknowledged all of it. While the
// broker is away it waits. An error that matches ErrLost means that the broker has lost
// acknowledged messages: the run must restart from a checkpoint, with a new writer.
func (w *Writer) Store(ctx context.Context, e Emission) error {
	if e.Position <= w.Published() {
		return nil
	}
	return w.parts(&e, func(m *shardMark, records []*nats.Msg) error {
		if err := w.store(ctx, *m, records); err != nil {
			return fmt.Errorf("stream %s: position %d: %w",
				w.config.Streams.Names.Estimates, e.Position, err)
		}
		return nil
	})
}

// records encodes the estimates of an emission.
func (w *Writer) records(estimates []quant.Estimate) ([]*nats.Msg, error) {
	records := make([]*nats.Msg, len(estimates))
	for i := range estimates {
		e := &estimates[i]
		data, err := alerts.PlainJSON(e)
		if err != nil {
			return nil, fmt.Errorf("estimate of %q at %d: %w", e.Community, e.Position, err)
		}
		records[i] = newMessage(
			w.config.Streams.Names.EstimateSubject(e.Community, e.Method, Ordinal(estimates, i)),
			w.config.Log, data)
	}
	return records, nil
}

// store sends one part until the broker has it, from this writer or another one.
func (w *Writer) store(ctx context.Context, m shardMark, records []*nats.Msg) error {
	batch, err := w.batch(&m, records)
	if err != nil {
		return err
	}
	err = request.Retry(ctx, w.nc, func() error {
		for {
			done, err := w.attempt(ctx, &m, batch)
			if err != nil || done {
				return err
			} // else the fence is another one than was known, which is known now
		}
	}, func(err error) { w.tracker.Failed(err, true) })
	if err == nil {
		w.tracker.Works()
	}
	return err
}

// batch returns a mark and its records as they are sent.
func (w *Writer) batch(m *shardMark, records []*nats.Msg) ([]*nats.Msg, error) {
	data, err := json.Marshal(m)
	first := newMessage(w.config.Streams.Names.MarkSubject(w.config.Shard), w.config.Log, data)
	return append([]*nats.Msg{first}, records...), err
}

// attempt sends a part once.
func (w *Writer) attempt(
	ctx context.Context,
	m *shardMark,
	batch []*nats.Msg,
) (done bool, err error) {
	if w.known.place().Compare(m.place()) >= 0 {
		return true, nil // a standby, or an earlier attempt, was first
	}
	if err := w.awaitSpace(ctx, batch); err != nil {
		return false, err
	}
	return w.send(ctx, m, batch)
}

// send sends a batch. The broker stores it only if the last mark is the known one.
func (w *Writer) send(ctx context.Context, m *shardMark, batch []*nats.Msg) (done bool, err error) {
	last, err := publishAfter(ctx, w.nc, jetstream.ExpectedLastSubjSeqHeader, w.known.Sequence,
		batch)
	switch {
	case err == nil:
		return true, w.accept(m, last, len(batch))
	case wrongSequence(err):
		return w.resolve(ctx, m)
	case missing(err):
		return false, w.restore(ctx, err)
	}
	return false, err
}

// accept records a part that the broker has acknowledged. If its mark is not after the last
// acknowledged one, the broker has lost the end of the stream.
func (w *Writer) accept(m *shardMark, last uint64, messages int) error {
	first := last - uint64(messages) + 1
	if first <= w.Sequence() {
		return fmt.Errorf("message %d: %w", w.Sequence(), ErrLost)
	}
	w.known = Mark{shardMark: *m, Sequence: first}
	w.renewed, w.beats.last = time.Now(), max(w.beats.last, m.nanoseconds())
	w.beats.active = max(w.beats.active, m.Active)
	w.end.Store(last)
	return nil
}

// Close says in the output log that this writer has ended, so that another configuration
// may begin at once. It leaves the connection open.
func (w *Writer) Close(ctx context.Context) error {
	m := w.known.shardMark
	m.Closed = true
	err := w.renew(ctx, m)
	if m = w.known.shardMark; err == nil &&
		!m.Closed { // a batch was stored, but the run ended before the answer came
		m.Closed = true
		err = w.renew(ctx, m)
	}
	return err
}

// renew repeats the last mark, or its replacement, if it is ours.
func (w *Writer) renew(ctx context.Context, m shardMark) error {
	if w.known.Sequence == 0 || !m.Writer.Equal(w.config.Writer) || m.Part < m.Parts {
		return nil
	}
	return w.storeMark(ctx, m)
}

// storeMark stores a mark without records.
func (w *Writer) storeMark(ctx context.Context, m shardMark) error {
	m.Records = 0
	batch, err := w.batch(&m, nil)
	if err == nil {
		_, err = w.send(ctx, &m, batch)
	}
	return err
}

// State returns the condition of the writer: whether the broker takes estimates.
func (w *Writer) State() request.State { return w.tracker.State(w.config.Streams.Names.Estimates) }

// errOtherWriter is matched by the error of a run that finds another run publishing to the same
// streams, with another configuration or of another log. Nothing of this run has been
// stored since.
var errOtherWriter = errors.New("stop one of the two, or give this one a prefix of its own")

// ErrLost is matched by an error that says that the broker has lost records which it had
// acknowledged, as it can when it is killed. They can be made again, from a checkpoint
// before them.
var ErrLost = errors.New("the broker has lost acknowledged records")

// headerLog names, on every record and alert, the log that its position counts in.
const headerLog = "Gqlstream-Log"

// wrongSequence reports whether the broker refused a batch because the last message is
// another one than its fence says.
func wrongSequence(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// parts calls visit for each part of an emission.
func (w *Writer) parts(e *Emission, visit func(*shardMark, []*nats.Msg) error) error {
	records, err := w.records(e.Estimates)
	if err != nil {
		return err
	}
	mark := shardMark{
		Writer:   w.config.Writer,
		Position: e.Position,
		Digest:   e.Digest,
		Time:     alerts.TimeText(e.Time),
		Parts:    max((len(records)+partRecordsMax-1)/partRecordsMax, 1),
		Config:   w.config.Config,
		Classes:  w.config.Classes,
		Log:      w.config.Log,
		Cut:      e.Cut,
		Active:   e.Active,
	}
	for mark.Part = 1; mark.Part <= mark.Parts; mark.Part++ {
		from := (mark.Part - 1) * partRecordsMax
		part := records[from:min(from+partRecordsMax, len(records))]
		mark.Records, mark.Notes = len(part), nil
		if mark.Part == 1 && w.config.Shard == 0 {
			mark.Notes = e.Notes
		}
		if err := visit(&mark, part); err != nil {
			return err
		}
	}
	return nil
}
