package pipeline

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"gqlstream/checkpoint"
	"gqlstream/incremental"
)

// A worker that takes shards over must not wait for a state that is being written and given to others,
// which may take seconds; the pipeline after it must know what became of it, and storing in haste must end.
func TestATakeOverDoesNotWaitForACheckpoint(t *testing.T) {
	k, err := openCheckpoints(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	hurried, goOn := make(chan struct{}), make(chan struct{})
	k.share = func(ctx context.Context, _ checkpoint.Manifest, _ []incremental.Section) {
		<-ctx.Done()
		close(hurried)
		<-goOn
	}
	k.write(checkpoint.Manifest{Position: 7}, nil, time.Now(), 0)
	k.hurry()
	next := k.handOn()
	<-hurried
	if err := k.finish(); err != nil { // would wait for ever
		t.Fatal(err)
	}
	if next.collect(false); next.writing == nil {
		t.Fatal("the state is said to be shared, and is not yet")
	}
	if next.sharing.Err() != nil {
		t.Fatal("the next pipeline is in haste too")
	}
	close(goOn)
	if err := next.finish(); err != nil || next.last.position != 7 {
		t.Fatalf("the checkpoint ends at position %d, %v", next.last.position, err)
	}
}
