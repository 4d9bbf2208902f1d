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

// Sharing a state with other workers may take minutes. Neither the next checkpoint nor a takeover
// of shards may wait for it. A state that is saved meanwhile is not shared. At the end of a run the
// other workers get a few seconds to receive the state.
func TestUploadsOfAStateDelayNothing(t *testing.T) {
	k, err := openCheckpoints(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p := &Pipeline{Checkpoints: k, group: &membership{}, log: slog.New(slog.DiscardHandler)}
	p.group.p = p
	main, next := newFold(p.Config, p.shards, nil), newFold(p.Config, p.shards, nil)
	main.stop = func() { close(main.done) }
	p.main.Store(main)
	p.nextFold.Store(next)
	given := make(chan uint64, 3)
	k.share = func(ctx context.Context, c *checkpoint.Checkpoint) {
		given <- c.Manifest.Position
		<-ctx.Done()
	}
	for position := range uint64(2) {
		k.write(checkpoint.Manifest{Position: position}, nil, time.Now(), 0)
		if k.writing.await(t.Context(), writtenWaitMax); k.last.Position != position {
			t.Fatalf("checkpoint %d is not there: %+v", position, k.last)
		}
	}
	p.group.replace(next) // would wait for ever
	if p.main.Load() != next || p.nextFold.Load() != nil {
		t.Fatal("the next fold is not the main one")
	}
	k.write(checkpoint.Manifest{Position: 7}, nil, time.Now(), 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	k.sharing.await(ctx, time.Hour) // a fold that ends does not wait
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
	k, err := openCheckpoints(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
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
		k, err := openCheckpoints(t.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		p := &Pipeline{Checkpoints: k}
		k.share = func(ctx context.Context, _ *checkpoint.Checkpoint) { <-ctx.Done() }
		k.write(checkpoint.Manifest{Position: 7}, nil, time.Now(), 0)
		done := make(chan struct{})
		p.followers.tasks = []*task{{runner: new(sinks.Runner), done: done, stop: func() {
			time.AfterFunc(5*time.Second, func() { close(done) })
		}}}
		begun := time.Now()
		if err := p.finish(); err != nil || k.last.Position != 7 {
			t.Errorf("%v, the newest checkpoint is at %d", err, k.last.Position)
		}
		if took := time.Since(begun); took < sharedLastMax || took > sharedLastMax+time.Second {
			t.Errorf("the end takes %v", took)
		}
	})
}
