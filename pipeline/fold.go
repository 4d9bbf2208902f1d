package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/sinks"
)

// fold processes the input log with a core, and publishes estimates of some shards. A run has one,
// the main fold. A worker of a group that gets other shards also starts a next fold, which replaces
// the main fold when it has caught up, so that the present shards do not pause. The pipeline's loop
// opens and drives it; the fold does not know the pipeline. The loop's goroutine owns the core.
//
// A next fold shortens a take-over with one copy a shard: the shards of a killed worker were
// published again after .6 and 2.1 s in place of 2.2 and 3.3 s, and when it came back, with two
// million edges, a record waited .1 to .6 s in place of 1.0 to 3.0 s (26 November 2026).
type fold struct {
	config  incremental.Config // with the shards to estimate
	steps   ingest.StepConfig
	core    *incremental.Core
	source  *ingest.JetStreamSource
	outlets outlets
	applied atomic.Uint64 // last position of a completed step
	// at a step that the main fold has not taken yet, waiting
	waitsForMain atomic.Bool
	behind       atomic.Bool                  // the next emission repeats records of the last one
	idle         atomic.Bool                  // the loop waits for messages
	step         atomic.Pointer[stepUnderWay] // the step in progress; nil: none
	outputEnd    sinks.Cursor                 // of the output log when the fold was opened
	begun        time.Time
	opened       atomic.Bool
	stop         context.CancelFunc // ends the loop
	done         chan struct{}      // closed when the loop has ended
}

// newFold returns a fold that estimates the shards owned, nil for all of this number of shards.
func newFold(c incremental.Config, shards int, owned []int) *fold {
	f := &fold{config: c, begun: time.Now(), done: make(chan struct{})}
	f.config.Owned, f.outlets.shards = owned, shards
	return f
}

// owned lists the shards that the fold estimates.
func (f *fold) owned() []int {
	if f.config.Owned == nil {
		return allShards(f.outlets.shards)
	}
	return f.config.Owned
}

// close frees the fold's resources, once its loop has ended.
func (f *fold) close() {
	if f.core == nil {
		return
	}
	if f.source != nil {
		_ = f.source.Close() // fails for files only
	}
	f.core.Close()
	f.core = nil
}
