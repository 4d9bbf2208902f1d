package incremental

import (
	"time"

	"gqlstream/ingest/event"
)

// After an erasure every checkpoint from before it must go, and one that is left to
// fall back on needs another beside it: so two checkpoints are owed, soon.
const (
	erasureCheckpoints = 2
	erasureEvery       = time.Minute // of log time between them at most, whatever CompactEvery says
)

// erasures counts the checkpoints that the last erasure still needs.
type erasures struct {
	last event.Position // of the last one; 0: there was none
	owed int            // checkpoints after it that are still to come
}

// record takes an erasure into account, also of a vertex that is not there: the log names it.
func (e *erasures) record(b *event.Batch) {
	for i := range b.Vertices {
		if b.Vertices[i].Erase {
			e.last, e.owed = b.Last, erasureCheckpoints
		}
	}
}

// due reports whether a checkpoint is due because of an erasure, when they are made
// every so often without one.
func (e *erasures) due(before, now event.Time, usual time.Duration) bool {
	return e.owed > 0 && (usual < 0 || usual > erasureEvery) && crosses(before, now, erasureEvery)
}

// Erased returns the position of the last erasure, 0 if there was none. A state at
// that position or after it holds nothing of what was erased.
func (c *Core) Erased() event.Position { return c.erasures.last }
