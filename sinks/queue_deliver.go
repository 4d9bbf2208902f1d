package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gqlstream/alerts"
	"gqlstream/quant"
)

// run delivers until ctx ends.
func (q *Queue) run(ctx context.Context) {
	defer close(q.done)
	for wait := queueRetryWaitMin; ctx.Err() == nil; {
		select {
		case other := <-q.others:
			q.swap(other)
		default:
		}
		worked, err := q.step(ctx)
		switch {
		case ctx.Err() != nil: // the error is ours
		case err != nil:
			q.fail(err)
			q.pause(ctx, wait)
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
func (q *Queue) open() error {
	q.mu.Lock()
	q.delivery = delivery{at: q.spool.done, settled: time.Now()}
	q.mu.Unlock()
	sink, err := q.config.Open(q.at.through())
	if err != nil {
		return err // sink may be a nil of some type
	}
	q.sink = sink
	return nil
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
		if r, ok, err = q.spool.next(&q.cursor); err != nil || !ok || r.place() > q.at {
			break
		}
	}
	if q.oldest = r.at; !ok {
		q.oldest = time.Time{}
	}
	return r, ok, err
}

func (q *Queue) deliver(ctx context.Context, r spoolRecord) (err error) {
	if s, is := q.sink.(skipper); is && r.marks&markSkip != 0 {
		err = s.Skip(r.position)
	}
	if err == nil && len(r.payload) > 0 {
		err = q.write(ctx, r)
	}
	if s, is := q.sink.(cutter); is && err == nil && r.marks&markCut != 0 {
		err = s.Cut(r.place().through())
	}
	if err != nil {
		return err
	}
	q.at, q.rows, q.bytes = r.place(), q.rows+1, q.bytes+r.bytes
	return nil
}

// write gives the sink the lines of a record.
func (q *Queue) write(ctx context.Context, r spoolRecord) error {
	if r.marks&markAlerts == 0 {
		estimates, err := decodeLines[quant.Estimate](r.payload)
		if err != nil {
			return fmt.Errorf("estimates of position %d: %w", r.position, err)
		}
		return q.sink.Write(ctx, estimates)
	}
	s, is := q.sink.(alertWriter)
	if !is {
		return fmt.Errorf("the sink takes no alerts: position %d", r.position)
	}
	transitions, err := decodeLines[alerts.Transition](r.payload)
	if err != nil {
		return fmt.Errorf("alerts of position %d: %w", r.position, err)
	}
	return s.WriteAlerts(transitions)
}

func decodeLines[T any](payload []byte) (list []T, err error) {
	for lines := json.NewDecoder(bytes.NewReader(payload)); lines.More(); {
		var one T
		if err := lines.Decode(&one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
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
		if err := s.Sync(q.at.through()); err != nil {
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
	case other := <-q.others:
		q.swap(other)
	case <-ctx.Done():
	}
}

// pause waits before the next attempt.
func (q *Queue) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case other := <-q.others:
		q.swap(other)
	case <-ctx.Done():
	}
}
