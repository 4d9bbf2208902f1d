package pipeline

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
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
	k.share = func(ctx context.Context, _ *checkpoint.Checkpoint) {
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
	if err := next.finish(); err != nil || next.last.Position != 7 {
		t.Fatalf("the checkpoint ends at position %d, %v", next.last.Position, err)
	}
}

// A state that is being written must be there for a take-over as soon as other workers may have it, once,
// and what a take-over adds to it must not show in what is written.
func TestAStateIsRestoredWhileItIsWritten(t *testing.T) {
	k, err := openCheckpoints(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	shared, goOn := make(chan struct{}), make(chan struct{})
	k.share = func(context.Context, *checkpoint.Checkpoint) {
		close(shared)
		<-goOn
	}
	k.write(checkpoint.Manifest{Position: 7}, []incremental.Section{{Name: "graph", Data: []byte{1}}}, time.Now(), 0)
	<-shared
	look := func(when string) {
		t.Helper()
		if positions, err := k.list(); err != nil || !slices.Equal(positions, []uint64{7}) {
			t.Errorf("%s: states at %v, %v", when, positions, err)
		}
		c, err := k.read(7)
		if err != nil || len(c.Sections) != 1 || !bytes.Equal(c.Sections["graph"], []byte{1}) {
			t.Fatalf("%s: %v, %v", when, c, err)
		}
		c.Sections["another"] = nil
	}
	look("while it is written")
	look("and again")
	close(goOn)
	if err := k.finish(); err != nil {
		t.Fatal(err)
	}
	look("when it is there")
}
