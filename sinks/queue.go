package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

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
	// allowed to repeat. After an error of Write or Sync the sink is closed and
	// opened anew, so an Open is also how a sink recovers.
	Open func(from uint64) (Sink, error)
}

// syncer is a sink that does not keep for good what Write has returned for.
type syncer interface{ Sync() error }

// Queue delivers emissions to a sink from a goroutine of its own, in order, for as
// long as it takes, and keeps on the disk what is not delivered: a sink that is
// away, slow or refuses does not hold the loop up until the spool is full, or its
// disk is. Then Write waits; nothing is ever dropped. See doc.go for its contract.
//
// Write, Sync, Flush and Close have one owner; State is for any goroutine.
type Queue struct {
	config  QueueConfig
	tracker Tracker

	mu       sync.Mutex // of the next three
	spool    *spool
	oldest   time.Time     // when the emission came that is being delivered; zero: none is
	progress chan struct{} // closed when the queue has settled, and replaced

	arrived chan struct{} // capacity 1
	asked   chan struct{} // capacity 1: someone waits for room, or for the end
	cancel  context.CancelFunc
	done    chan struct{} // nil before Start

	delivery // of the goroutine
}

// delivery is where a queue's goroutine stands.
type delivery struct {
	sink    Sink // nil: closed after an error
	cursor  cursor
	at      uint64    // position of the last delivery
	rows    int       // delivered since the queue settled
	bytes   int64     // of these
	settled time.Time // when the queue did
	hurry   bool      // someone waits for it
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
		arrived: make(chan struct{}, 1), asked: make(chan struct{}, 1),
	}, nil
}

// Last returns the position of the newest emission that the queue has, or has
// delivered. A checkpoint keeps it: a spool that ends before it has lost some.
func (q *Queue) Last() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spool.last
}

// Start opens the sink and begins to deliver. A queue that was never used expects
// emissions after position from.
func (q *Queue) Start(from uint64) error {
	if q.spool.fresh {
		if err := q.spool.begin(from); err != nil {
			return fmt.Errorf("sinks: queue of %s: %w", q.config.Name, err)
		}
	}
	if err := q.open(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	q.cancel, q.done = cancel, make(chan struct{})
	go q.run(ctx)
	return nil
}

// Write implements Sink: it puts the emission into the queue, unless that has had
// it before, and waits while there is no room.
func (q *Queue) Write(ctx context.Context, estimates []quant.Estimate) error {
	if len(estimates) == 0 {
		return nil
	}
	var payload bytes.Buffer
	lines := NewLines(&payload)
	if err := lines.Write(ctx, estimates); err != nil {
		return err
	}
	defer q.tracker.Release()
	for {
		moved, err := q.put(estimates[0].Position, payload.Bytes())
		if err == nil {
			return nil
		}
		q.tracker.Hold(err.Error())
		if given := q.await(ctx, moved); given != nil {
			return fmt.Errorf("sinks: %s: %w while waiting: %w", q.config.Name, given, err)
		}
	}
}

// put appends an emission. An error says why it has to wait, and moved when to try
// again.
func (q *Queue) put(position uint64, payload []byte) (moved <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if position <= q.spool.last {
		return nil, nil
	}
	if !q.spool.fits(payload) {
		return q.progress, fmt.Errorf("its queue is full: %d emissions, %d bytes", q.spool.rows, q.spool.size())
	}
	if err := q.spool.append(position, time.Now(), payload); err != nil {
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

// Sync puts what was written on the disk: before a checkpoint says that it needs
// not come again.
func (q *Queue) Sync() error {
	q.mu.Lock()
	defer q.mu.Unlock()
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
	return errors.Join(err, q.Sync(), q.spool.close())
}

// run delivers until ctx ends.
func (q *Queue) run(ctx context.Context) {
	defer close(q.done)
	for wait := queueRetryWaitMin; ctx.Err() == nil; {
		worked, err := q.step(ctx)
		switch {
		case ctx.Err() != nil: // the error is ours
		case err != nil:
			q.fail(err)
			_ = sleep(ctx, wait)
			wait = min(2*wait, queueRetryWaitMax)
		case worked:
			wait = queueRetryWaitMin
			q.tracker.Works()
		default: // it is open, and has all there is
			q.tracker.Works()
			q.rest(ctx)
		}
	}
	if q.sink != nil && q.rows > 0 {
		if err := q.settle(); err != nil {
			q.tracker.Failed(err, false)
		}
	}
}

// step delivers one emission, if there is one, and settles if it is time.
func (q *Queue) step(ctx context.Context) (worked bool, err error) {
	if q.sink == nil {
		if err := q.open(); err != nil {
			return false, err
		}
	}
	r, ok, err := q.next()
	if err != nil {
		return false, err
	}
	if ok {
		if err := q.deliver(ctx, r); err != nil {
			return false, err
		}
	}
	if q.due() {
		return true, q.settle()
	}
	return ok, nil
}

// open opens the sink where it is known to stand.
func (q *Queue) open() (err error) {
	q.mu.Lock()
	q.delivery = delivery{at: q.spool.done, settled: time.Now()}
	q.mu.Unlock()
	q.sink, err = q.config.Open(q.at)
	return err
}

// fail closes the sink, which is in an unknown state, after settling what it took
// before, so that a sink that fails often gets on all the same.
func (q *Queue) fail(err error) {
	q.tracker.Failed(err, false)
	if q.sink == nil {
		return
	}
	if q.rows > 0 {
		_ = q.settle() // else it comes again
	}
	_ = q.sink.Close()
	q.sink = nil
}

// next returns the next emission that is not delivered.
func (q *Queue) next() (r spoolRecord, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if r, ok, err = q.spool.next(&q.cursor); err != nil || !ok || r.position > q.at {
			break
		}
	}
	if q.oldest = r.at; !ok {
		q.oldest = time.Time{}
	}
	return r, ok, err
}

func (q *Queue) deliver(ctx context.Context, r spoolRecord) error {
	var estimates []quant.Estimate
	for lines := json.NewDecoder(bytes.NewReader(r.payload)); lines.More(); {
		var e quant.Estimate
		if err := lines.Decode(&e); err != nil {
			return fmt.Errorf("estimates of position %d: %w", r.position, err)
		}
		estimates = append(estimates, e)
	}
	if err := q.sink.Write(ctx, estimates); err != nil {
		return err
	}
	q.at, q.rows, q.bytes = r.position, q.rows+1, q.bytes+r.bytes
	return nil
}

// due reports whether to settle: after a while, after much, or when someone waits
// and it would make room.
func (q *Queue) due() bool {
	select {
	case <-q.asked:
		q.hurry = true
	default:
	}
	if q.rows == 0 {
		return q.hurry && q.wholeDelivered()
	}
	return q.bytes >= queueSettleBytes || time.Since(q.settled) >= queueSettleEvery || q.hurry && q.wholeDelivered()
}

// wholeDelivered reports whether all of the oldest segment is.
func (q *Queue) wholeDelivered() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.spool.segments) > 0 && q.spool.segments[0].last <= q.at && q.spool.size() > 0
}

// settle makes the sink keep what it has for good, and frees the room of it.
func (q *Queue) settle() error {
	if s, ok := q.sink.(syncer); ok {
		if err := s.Sync(); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	rows := q.rows
	q.rows, q.bytes = 0, 0
	if err := q.spool.delivered(q.at, rows, q.hurry); err != nil {
		return err
	}
	q.settled, q.hurry = time.Now(), false
	close(q.progress)
	q.progress = make(chan struct{})
	return nil
}

// rest waits for something to do.
func (q *Queue) rest(ctx context.Context) {
	timer := time.NewTimer(queueSettleEvery)
	defer timer.Stop()
	settle := timer.C
	if q.rows == 0 {
		settle = nil
	}
	select {
	case <-q.arrived:
	case <-q.asked:
		q.hurry = true
	case <-settle:
	case <-ctx.Done():
	}
}
