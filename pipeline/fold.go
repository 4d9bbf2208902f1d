package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
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
	config incremental.Config // with the shards to estimate
	begun  time.Time
	stop   context.CancelFunc // ends the loop
	done   chan struct{}      // closed when the loop has ended
	foldParts
	opened  atomic.Bool   // the parts are there
	applied atomic.Uint64 // last position of a completed step
	// at a step that the main fold has not taken yet, waiting
	waitsForMain atomic.Bool
	behind       atomic.Bool                  // records are left for the next emission
	idle         atomic.Bool                  // the loop waits for messages
	step         atomic.Pointer[stepUnderWay] // the step in progress; nil: none
}

// foldParts are the parts that a fold works with. They are opened together; see opener.open.
type foldParts struct {
	steps     ingest.StepConfig
	outlets   *outlets
	outputEnd sinks.Cursor   // of the output log when the fold was opened
	position  event.Position // of the core when it was opened
	core      *incremental.Core
	source    *ingest.JetStreamSource
}

// newFold returns a fold that is to estimate the shards owned, nil for all.
func newFold(c incremental.Config, owned []int) *fold {
	c.Owned = owned
	return &fold{config: c, begun: time.Now(), done: make(chan struct{})}
}

// install gives a fold its parts.
func (f *fold) install(parts foldParts) {
	f.foldParts = parts
	f.applied.Store(uint64(parts.position))
	f.opened.Store(true)
}

// close frees the parts, once the loop has ended.
func (p *foldParts) close() {
	if p.core == nil {
		return
	}
	if p.source != nil {
		_ = p.source.Close() // fails for files only
	}
	p.core.Close()
	p.core = nil
}
