package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"gqlstream/alerts"
	"gqlstream/quant"
)

// Defaults and limits of a queue.
const (
	QueueBytesDefault = 256 << 20
	QueueBytesMin     = 1 << 20
	queueRetryWaitMin = 50 * time.Millisecond
	queueRetryWaitMax = 10 * time.Second
	queueSettleEvery  = time.Second // at most this long, or
	queueSettleBytes  = 8 << 20     // this much, is delivered and not yet settled
	queueCloseWaitMax = 10 * time.Second
	queueLookWait     = time.Second // between two looks for room
)

// QueueConfig describes a queue before a sink.
type QueueConfig struct {
	Name     string // of the sink, in metrics and messages; a few per process
	Dir      string // of the spool; no other queue may use it
	Log      string // identity of the log that positions count in
	BytesMax int64  // of the spool; 0: 256 MiB

	// Open opens the sink. It gets every emission after position from, in order,
	// and perhaps some again that it had before: those it must leave out, or be
	// allowed to repeat. After an error the sink is closed and opened anew, so an
	// Open is also how a sink recovers.
	Open func(from uint64) (Sink, error)
}

// Emission is what a step has for the sinks behind queues, all of one position.
type Emission struct {
	Position    uint64
	Estimates   []quant.Estimate
	Transitions []alerts.Transition // not with estimates in one queue
	Cut         bool                // the log asks for a checkpoint here
}

// What a sink behind a queue may implement besides.
type (
	// syncer does not keep for good what Write has returned for. Everything up to
	// the position has been delivered.
	syncer interface{ Sync(position uint64) error }

	// alertWriter takes the transitions of one position; of a queue of alerts.
	alertWriter interface {
		WriteAlerts(transitions []alerts.Transition) error
	}

	// cutter is told where the log asks for a checkpoint: after what has a position
	// up to the one given.
	cutter interface{ Cut(position uint64) error }

	// skipper is told that what the log holds up to a position, and the queue has
	// not brought, went past while there was no queue.
	skipper interface{ Skip(position uint64) error }
)

// Queue delivers emissions to a sink from a goroutine of its own, in order, for as
// long as it takes, and keeps on the disk what is not delivered: a sink that is
// away, slow or refuses does not hold the loop up until the spool is full, or its
// disk is. Then Put waits; nothing is ever dropped. See doc.go for its contract.
//
// Put, Sync, Flush and Close have one owner; State is for any goroutine.
type Queue struct {
	config  QueueConfig
	tracker Tracker

	mu       sync.Mutex // of the next three
	spool    *spool
	oldest   time.Time     // when the emission came that is being delivered; zero: none is
	progress chan struct{} // closed when the queue has settled, and replaced

	arrived chan struct{} // capacity 1
	asked   chan struct{} // capacity 1: someone waits for room, or for the end
	others  chan replacement
	cancel  context.CancelFunc
	done    chan struct{} // nil before Start

	delivery // of the goroutine
}

// delivery is where a queue's goroutine stands.
type delivery struct {
	sink    Sink // nil: closed after an error
	cursor  cursor
	at      spoolPlace // of the last delivery
	rows    int        // delivered since the queue settled
	bytes   int64      // of these
	settled time.Time  // when the queue did
	hurry   bool       // someone waits for it
}

// OpenQueue opens the spool. Nothing is delivered before Start.
func OpenQueue(c QueueConfig) (*Queue, error) {
	if c.BytesMax == 0 {
		c.BytesMax = QueueBytesDefault
	}
	if c.BytesMax < QueueBytesMin {
		return nil, fmt.Errorf("sinks: a queue of %d bytes, want at least %d", c.BytesMax, QueueBytesMin)
	}
	spool, err := openSpool(c.Dir, c.Log, c.BytesMax)
	if err != nil {
		return nil, fmt.Errorf("sinks: queue of %s: %w", c.Name, err)
	}
	return &Queue{
		config: c, spool: spool, progress: make(chan struct{}),
		arrived: make(chan struct{}, 1), asked: make(chan struct{}, 1), others: make(chan replacement),
	}, nil
}

// Last returns the position of the newest emission that the queue has, or has
// delivered. A checkpoint keeps it: a spool that ends before it has lost some.
func (q *Queue) Last() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spool.last.through()
}

// SetAside returns the files of the spool that were damaged and set aside when it
// was opened, for a look; a few are kept.
func (q *Queue) SetAside() []string { return q.spool.damaged }

// Start opens the sink and begins to deliver: what was in the spool before, and what
// comes. Nothing that does has a position up to from. A sink that cannot be opened is an error, but for
// one on a full disk, which is tried again.
func (q *Queue) Start(from uint64) (err error) {
	switch {
	case q.spool.fresh:
		err = q.spool.begin(from)
	case placeAt(from) > q.spool.last: // the run had no such queue for a while
		err = q.spool.append(spoolRecord{position: from, at: time.Now(), marks: markSkip})
	}
	if err != nil {
		return fmt.Errorf("sinks: queue of %s: %w", q.config.Name, err)
	}
	if err := q.open(); outOfRoom(err) {
		q.tracker.Failed(err, false)
	} else if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	q.cancel, q.done = cancel, make(chan struct{})
	go q.run(ctx)
	return nil
}

// outOfRoom reports whether an error is one of a disk on which there may be room
// again.
func outOfRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Write implements Sink.
func (q *Queue) Write(ctx context.Context, estimates []quant.Estimate) error {
	if len(estimates) == 0 {
		return nil
	}
	return q.Put(ctx, Emission{Position: estimates[0].Position, Estimates: estimates})
}

// Put puts an emission into the queue, unless that has had it before or it says
// nothing, and waits while there is no room.
func (q *Queue) Put(ctx context.Context, e Emission) error {
	r, err := e.record()
	if err != nil || len(r.payload) == 0 && !e.Cut {
		return err
	}
	defer q.tracker.Release()
	for {
		moved, err := q.put(r)
		if err == nil {
			return nil
		}
		q.tracker.Hold(err.Error())
		if given := q.await(ctx, moved); given != nil {
			return fmt.Errorf("sinks: %s: %w while waiting: %w", q.config.Name, given, err)
		}
	}
}

// Marks of a record in the spool, beside markBefore.
const (
	markAlerts = 2 << iota // the payload is transitions
	markCut                // the log asks for a checkpoint after it
	markSkip               // what is before it and not in the spool went past
)

// record returns the emission as the spool keeps it, in JSON lines.
func (e Emission) record() (spoolRecord, error) {
	if len(e.Estimates) > 0 && len(e.Transitions) > 0 {
		panic("sinks: estimates and transitions in one queue")
	}
	var payload bytes.Buffer
	lines := NewLines(&payload)
	err := errors.Join(lines.Write(context.Background(), e.Estimates), lines.WriteAlerts(e.Transitions))
	r := spoolRecord{position: e.Position, at: time.Now(), payload: payload.Bytes()}
	if len(e.Transitions) > 0 {
		r.marks |= markAlerts
	}
	if e.Cut {
		r.marks |= markCut
	}
	if len(r.payload) == 0 { // the next step may emit at this position, see ingest
		r.marks |= markBefore
	}
	return r, err
}

// put appends an emission. An error says why it has to wait, and moved when to try
// again.
func (q *Queue) put(r spoolRecord) (moved <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.place() <= q.spool.last {
		return nil, nil
	}
	if !q.spool.fits(r.payload) {
		return q.progress, fmt.Errorf("its queue is full: %d emissions, %d bytes", q.spool.rows, q.spool.size())
	}
	if err := q.spool.append(r); err != nil {
		return q.progress, fmt.Errorf("its queue cannot be written: %w", err)
	}
	signal(q.arrived)
	return nil, nil
}

// await asks the goroutine to settle and waits until it has, or for a while.
func (q *Queue) await(ctx context.Context, moved <-chan struct{}) error {
	signal(q.asked)
	timer := time.NewTimer(queueLookWait)
	defer timer.Stop()
	select {
	case <-moved:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// signal leaves a token in a channel of capacity 1.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sync puts what was written on the disk, and notes that nothing else has a position
// up to the one given: before a checkpoint says that it needs not come again.
func (q *Queue) Sync(position uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if placeAt(position) > q.spool.last {
		if err := q.spool.append(spoolRecord{position: position, at: time.Now()}); err != nil {
			return fmt.Errorf("sinks: queue of %s: %w", q.config.Name, err)
		}
		signal(q.arrived)
	}
	if err := q.spool.sync(); err != nil {
		return fmt.Errorf("sinks: queue of %s: %w", q.config.Name, err)
	}
	return nil
}

// Flush waits until the sink has everything for good.
func (q *Queue) Flush(ctx context.Context) error {
	for {
		q.mu.Lock()
		moved, left := q.progress, q.spool.last > q.spool.done
		q.mu.Unlock()
		if !left {
			return nil
		}
		if err := q.await(ctx, moved); err != nil {
			return fmt.Errorf("sinks: %s: %w: what it has not taken stays in its queue for the next run", q.config.Name, err)
		}
	}
}

// State implements what metrics ask of a sink.
func (q *Queue) State() State {
	s := q.tracker.State(q.config.Name)
	q.mu.Lock()
	defer q.mu.Unlock()
	s.Emissions, s.Bytes, s.BytesMax, s.Oldest = q.spool.rows, q.spool.size(), q.config.BytesMax, q.oldest
	return s
}

// Close implements Sink. What is not delivered stays in the spool for the next run.
func (q *Queue) Close() error {
	if q.done == nil {
		return q.spool.close()
	}
	q.cancel()
	timer := time.NewTimer(queueCloseWaitMax)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
		return fmt.Errorf("sinks: %s does not return; what it has not taken stays in %s", q.config.Name, q.config.Dir)
	}
	var err error
	if q.sink != nil {
		err = q.sink.Close()
	}
	return errors.Join(err, q.spool.sync(), q.spool.close())
}
