package sinks

import (
	"context"
	"fmt"
	"time"
)

// queueReplaceWaitMax bounds how long Replace waits for what the sink is doing.
const queueReplaceWaitMax = 5 * time.Second

// replacement is a sink that is to take the place of another.
type replacement struct {
	open func(from uint64) (Sink, error)
	done chan error // capacity 1
}

// Replace puts another sink in the place of the one that is; open is as in
// QueueConfig. What that has not taken for good goes to the other: Flush first. After
// an error the one that is stays. The queue is started, and its owner calls.
func (q *Queue) Replace(ctx context.Context, open func(from uint64) (Sink, error)) error {
	other := replacement{open, make(chan error, 1)}
	timer := time.NewTimer(queueReplaceWaitMax)
	defer timer.Stop()
	select {
	case q.others <- other:
	case <-timer.C:
		return fmt.Errorf("sinks: %s does not return, and stays", q.config.Name)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-other.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// swap takes over another sink, if it can be opened.
func (q *Queue) swap(other replacement) {
	if q.sink != nil {
		if q.rows > 0 {
			_ = q.settle() // else the other gets it as well
		}
		_ = q.sink.Close()
		q.sink = nil
	}
	before := q.config.Open
	q.config.Open = other.open
	err := q.open()
	if err != nil {
		q.config.Open = before // which the next step opens
	}
	other.done <- err
}
