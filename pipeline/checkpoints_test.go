package pipeline

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"gqlstream/internal/checkpoint"
	"gqlstream/sinks"
)

func openCheckpoints(t *testing.T) *checkpoints {
	t.Helper()
	dir, err := openCheckpointDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return newCheckpoints(dir, slog.New(slog.DiscardHandler), nil)
}

// unopened returns a pipeline with a log and no folds.
func unopened(log slog.Handler) *Pipeline {
	return &Pipeline{base: &base{plan: &plan{log: slog.New(log)}}, folds: &folds{}}
}

// Sharing a state with other workers may take minutes. Neither the next checkpoint nor a takeover
// of shards may wait for it. A state that is saved meanwhile is not shared. At the end of a run the
// other workers get a few seconds to receive the state.
func TestUploadsOfAStateDelayNothing(t *testing.T) {
	k := openCheckpoints(t)
	p := unopened(slog.DiscardHandler)
	p.Checkpoints = k
	main, next := newFold(p.Config, nil), newFold(p.Config, nil)
	main.stop = func() { close(main.done) }
	p.folds.main.Store(main)
	p.folds.next.Store(next)
	given := make(chan uint64, 3)
	k.upload = func(ctx context.Context, c *checkpoint.Checkpoint) {
		given <- c.Manifest.Position
		<-ctx.Done()
	}
	for position := range uint64(2) {
		k.write(checkpoint.Manifest{Position: position}, nil, time.Now(), 0)
		if k.writing.await(t.Context(), writtenWaitMax); k.last.Position != position {
			t.Fatalf("checkpoint %d is not there: %+v", position, k.last)
		}
	}
	p.replace(next) // would wait for ever
	if p.folds.main.Load() != next || p.folds.next.Load() != nil {
		t.Fatal("the next fold is not the main one")
	}
	k.write(checkpoint.Manifest{Position: 7}, nil, time.Now(), 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	k.uploading.await(ctx, time.Hour) // a fold that ends does not wait
	if err := p.Checkpoints.finish(); err != nil || k.last.Position != 7 || len(given) != 1 {
		t.Fatalf(
			"the newest checkpoint is at position %d, %d were given, %v", k.last.Position,
			len(given), err,
		)
	}
}

// The result of a checkpoint must be shown with the step after it, not with the next
// checkpoint.
func TestACheckpointIsShownAtTheNextStep(t *testing.T) {
	k := openCheckpoints(t)
	if shown := k.newest(); shown != nil {
		t.Errorf("before the first one %+v is shown", shown)
	}
	k.write(checkpoint.Manifest{Position: 7}, nil, time.Now(), 0)
	for begun := time.Now(); k.newest() == nil; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("a checkpoint is not shown for a minute")
		}
	}
	if shown := k.newest(); shown.Position != 7 {
		t.Errorf("%+v is shown", shown)
	}
}

// An operator who stops a run waits ten seconds for its end. The run must therefore wait
// for all its tasks at the same time.
func TestTheEndOfARunWaitsForEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openCheckpoints(t)
		f := new(followers)
		k.upload = func(ctx context.Context, _ *checkpoint.Checkpoint) { <-ctx.Done() }
		k.write(checkpoint.Manifest{Position: 7}, nil, time.Now(), 0)
		done := make(chan struct{})
		f.tasks = []*task{{runner: new(sinks.Runner), done: done, stop: func() {
			time.AfterFunc(5*time.Second, func() { close(done) })
		}}}
		begun := time.Now()
		parts := closers{k.finish, f.close}
		if err := parts.closeTogether(); err != nil || k.last.Position != 7 {
			t.Errorf("%v, the newest checkpoint is at %d", err, k.last.Position)
		}
		if took := time.Since(begun); took < uploadLastMax || took > uploadLastMax+time.Second {
			t.Errorf("the end takes %v", took)
		}
	})
}
