package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/sinks/web"
)

// checkpoints saves the core: the loop makes the copy, and a goroutine writes it. At most one is
// being written; a boundary during a write is skipped. If a checkpoint fails, for lack of space for
// example, nothing is lost: the previous one stays, and the next boundary makes another.
type checkpoints struct {
	Dir        *checkpoint.Dir
	log        *slog.Logger
	upload     uploadState     // nil: there are no other workers
	uploads    context.Context // of all uploads
	endUploads context.CancelFunc
	writing    slot
	uploading  slot

	mu       sync.Mutex     // guards the fields below
	last     web.Checkpoint // the newest successful one, and the number of failures
	loggedAt time.Time      // when the program's log last mentioned one
	unlogged int            // checkpoints since then
	err      error          // of the newest one
}

// uploadState passes a state to other workers.
type uploadState func(context.Context, *checkpoint.Checkpoint)

// slot is a lock for work that is done once at a time.
type slot chan struct{}

func newSlot() slot { return make(slot, 1) }

// await waits until the work is over, up to a time limit or until ctx ends.
func (s slot) await(ctx context.Context, most time.Duration) {
	select {
	case s <- struct{}{}:
		<-s
	case <-time.After(most):
	case <-ctx.Done():
	}
}

func checkpointsIn(state string) string { return filepath.Join(state, "checkpoints") }

func openCheckpointDir(state string) (*checkpoint.Dir, error) {
	dir, err := checkpoint.Open(checkpoint.Disk{}, checkpointsIn(state))
	if err != nil {
		return nil, err
	}
	return dir, dir.CheckFormat()
}

func newCheckpoints(dir *checkpoint.Dir, log *slog.Logger, upload uploadState) *checkpoints {
	k := &checkpoints{Dir: dir, log: log, upload: upload, writing: newSlot(), uploading: newSlot()}
	k.uploads, k.endUploads = context.WithCancel(context.Background())
	return k
}

// write writes a state in a goroutine, after the previous write has ended. The loop has been
// blocked since begun, and before that for pause.
func (k *checkpoints) write(
	m checkpoint.Manifest, state []incremental.Section, begun time.Time, pause time.Duration,
) {
	pause += time.Since(begun)
	k.writing <- struct{}{}
	go func() {
		n, err := k.store(m, state)
		k.record(
			web.Checkpoint{
				Position: m.Position,
				At:       time.Now().UTC(),
				Seconds:  time.Since(begun).Seconds(),
				Bytes:    n,
			},
			pause,
			err,
		)
		<-k.writing
	}()
}

// store writes a state, and also passes it to other workers: a worker that takes shards over reads
// the log from there. A slow network does not delay later states: a state that comes while another
// one is being passed on stays on this machine.
func (k *checkpoints) store(
	m checkpoint.Manifest,
	state []incremental.Section,
) (bytes int64, err error) {
	if err := incremental.Encode(state); err != nil {
		return 0, err
	}
	c := checkpoint.New(m)
	for _, s := range state {
		c.Add(s.Name, s.Data)
	}
	if k.upload != nil && m.Derived != checkpoint.NoDerived {
		select {
		case k.uploading <- struct{}{}:
			go func() {
				k.upload(k.uploads, c)
				<-k.uploading
			}()
		default:
			k.log.Warn("other workers do not have this checkpoint", "position", m.Position,
				"reason", "the upload of the previous one is not finished")
		}
	}
	return k.Dir.Save(c)
}

// How long to wait for work under way.
const (
	writtenWaitMax = math.MaxInt64 // for a state that is being written: no limit
	// uploadWaitMax is for a state that is being passed on, before the next one: other workers need
	// all parts of each.
	uploadWaitMax = 2 * time.Second
	uploadLastMax = 5 * time.Second // the same, at the end of a run
)

// finish waits for the writer at the end of a run and returns the error of the newest checkpoint.
func (k *checkpoints) finish() error {
	k.writing.await(context.Background(), writtenWaitMax)
	k.uploading.await(context.Background(), uploadLastMax)
	k.endUploads()
	return k.err
}

// record records the result of the newest checkpoint, which blocked the loop for pause.
func (k *checkpoints) record(now web.Checkpoint, pause time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.last.Failed++
		k.err = fmt.Errorf("checkpoint: %w", err)
		k.log.Warn("a checkpoint failed; the previous one stands", "before", k.last.Position,
			"reason", err)
		return
	}
	now.Failed = k.last.Failed
	k.last, k.err = now, nil
	if k.unlogged++; now.At.Sub(k.loggedAt) < checkpointLineEvery {
		return
	}
	took := time.Duration(now.Seconds * float64(time.Second))
	k.log.Info("checkpoint", "position", now.Position, "bytes", now.Bytes, "pause",
		pause.Round(time.Microsecond), "took", took.Round(time.Millisecond), "written", k.unlogged)
	k.loggedAt, k.unlogged = now.At, 0
}

// newest returns the newest successful checkpoint and the number of failures; nil if none has ended
// yet.
func (k *checkpoints) newest() *web.Checkpoint {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := k.last; !last.At.IsZero() || last.Failed > 0 {
		return &last
	}
	return nil
}

const checkpointLineEvery = 30 * time.Second // a history being loaded makes several a second

// ResumeOf returns the place where the log continues after a checkpoint, and its identity.
func ResumeOf(m checkpoint.Manifest) (ingest.Resume, *ingest.Identity) {
	at := ingest.Resume{
		Position: event.Position(m.Position),
		Time:     event.Time(m.LogTime),
		Emitted:  m.Emitted,
		Clock:    event.Time(m.Clock),
	}
	return at, &ingest.Identity{
		Stream:   m.Stream.Name,
		Position: at.Position,
		Digest:   ingest.ParseDigest(m.Stream.Digest),
	}
}
