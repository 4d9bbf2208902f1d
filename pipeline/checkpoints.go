package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"gqlstream/checkpoint"
	"gqlstream/incremental"
	"gqlstream/sinks/web"
)

// checkpoints saves the core: the copy is made in the loop, the writing beside it. At most one is being
// written; a boundary that finds one under way is passed over. One that fails, for want of space say,
// loses nothing: the one before stands, and the next boundary makes another.
type checkpoints struct {
	Dir     *checkpoint.Dir
	log     *slog.Logger
	share   func(context.Context, *checkpoint.Checkpoint) // gives a state to other workers; nil: there are none
	sharing chan struct{}                                 // holds something meanwhile
	end     context.CancelFunc                            // of what is given
	given   context.Context
	writing chan saved     // holds one result when the writer is done; nil when none runs
	last    web.Checkpoint // the newest that succeeded, and how many failed
	said    time.Time      // when the log told of one
	unsaid  int            // since then
	err     error          // of the newest one
}

type saved struct {
	web.Checkpoint
	pause time.Duration // of the loop, for the step with its compaction and the copy
	err   error
}

func checkpointsIn(state string) string { return filepath.Join(state, "checkpoints") }

func openCheckpoints(state string, log *slog.Logger) (*checkpoints, error) {
	dir, err := checkpoint.Open(checkpoint.Disk{}, checkpointsIn(state))
	if err != nil {
		return nil, err
	}
	k := &checkpoints{Dir: dir, log: log, sharing: make(chan struct{}, 1)}
	k.given, k.end = context.WithCancel(context.Background())
	return k, dir.CheckFormat()
}

// write writes a state beside the loop. The loop has stood still for it since begun, and
// before that for pause.
func (k *checkpoints) write(m checkpoint.Manifest, state []incremental.Section, begun time.Time, pause time.Duration) {
	pause += time.Since(begun)
	k.writing = make(chan saved, 1)
	go func(done chan<- saved) {
		n, err := k.store(m, state)
		done <- saved{web.Checkpoint{Position: m.Position, At: time.Now().UTC(), Seconds: time.Since(begun).Seconds(), Bytes: n}, pause, err}
	}(k.writing)
}

// store writes a state, and gives it to other workers beside that: one that takes shards over reads the log from there.
// Nobody waits for long for the network: a state that comes while another one is given stays here.
func (k *checkpoints) store(m checkpoint.Manifest, state []incremental.Section) (bytes int64, err error) {
	if err := incremental.Encode(state); err != nil {
		return 0, err
	}
	c := checkpoint.New(m)
	for _, s := range state {
		c.Add(s.Name, s.Data)
	}
	if k.share != nil {
		select {
		case k.sharing <- struct{}{}:
			go func() {
				k.share(k.given, c)
				<-k.sharing
			}()
		default:
			k.log.Warn("other workers do not have this checkpoint", "position", m.Position, "reason", "the one before is still being given to them")
		}
	}
	return k.Dir.Save(c)
}

// How long a state that is given to others is waited for.
const (
	sharedWaitMax = 2 * time.Second // before the next one, of which they are to have all parts, too
	sharedLastMax = 5 * time.Second // after the end of a run
)

// finish waits for the writer at the end of a run and returns what became of the newest checkpoint.
func (k *checkpoints) finish() error {
	k.await(context.Background())
	k.awaitShared(context.Background(), sharedLastMax)
	k.end()
	return k.err
}

// awaitShared waits for a while until others have the newest state, or until ctx ends.
func (k *checkpoints) awaitShared(ctx context.Context, most time.Duration) {
	select {
	case k.sharing <- struct{}{}:
		<-k.sharing
	case <-time.After(most):
	case <-ctx.Done():
	}
}

// await waits for the writer, if there is one, until ctx ends.
func (k *checkpoints) await(ctx context.Context) {
	if k.writing == nil {
		return
	}
	select {
	case now := <-k.writing:
		k.take(now)
	case <-ctx.Done():
	}
}

// take takes what became of the newest checkpoint.
func (k *checkpoints) take(now saved) {
	k.writing = nil
	if now.err != nil {
		k.last.Failed++
		k.err = fmt.Errorf("checkpoint: %w", now.err)
		k.log.Warn("a checkpoint failed; the one before stands", "before", k.last.Position, "reason", now.err)
		return
	}
	now.Failed = k.last.Failed
	k.last, k.err = now.Checkpoint, nil
	if k.unsaid++; now.At.Sub(k.said) < checkpointLineEvery {
		return
	}
	took := time.Duration(now.Seconds * float64(time.Second))
	k.log.Info("checkpoint", "position", now.Position, "bytes", now.Bytes,
		"pause", now.pause.Round(time.Microsecond), "took", took.Round(time.Millisecond), "written", k.unsaid)
	k.said, k.unsaid = now.At, 0
}

// newest returns what is known of the newest checkpoint, and of those that failed; nil: none has ended yet. The
// next boundary, which would learn of it, may be a minute away.
func (k *checkpoints) newest() *web.Checkpoint {
	if len(k.writing) > 0 {
		k.take(<-k.writing)
	}
	if k.last.At.IsZero() && k.last.Failed == 0 {
		return nil
	}
	last := k.last
	return &last
}

const checkpointLineEvery = 30 * time.Second // while a history is read there are several a second
