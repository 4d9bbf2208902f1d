package pipeline

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"gqlstream/ingest"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
)

// Messages outside log.keep must be removed, unless the two newest checkpoints need them. The
// removed messages must not count as lost.
func TestOldDataIsRemoved(t *testing.T) {
	settings := settingsOfServer(t)
	said := &sayings{}
	p, err := Open(t.Context(), settings, Options{Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	p.observed.audits.every, p.settings.Log.Keep = time.Millisecond, "1"
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	defer func() {
		cancel()
		<-ended
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	var positions []uint64
	saved := func(n int) {
		t.Helper()
		for len(positions) < n {
			if _, err := p.Broker.JS.Publish(ctx, "gql.control",
				[]byte(`{"op":"checkpoint"}`)); err != nil {
				t.Fatal(err)
			}
			before := len(positions)
			for len(positions) == before {
				if positions, err = p.Checkpoints.Dir.List(); err != nil ||
					request.Pause(ctx, 10*time.Millisecond) != nil {
					t.Fatalf("no checkpoint: %v\n%s", err, said)
				}
			}
		}
	}
	for range 50 {
		if _, err := p.Broker.JS.Publish(ctx, "gql.edge", []byte(`{"src":1,"dst":2}`)); err != nil {
			t.Fatal(err)
		}
	}
	saved(1)
	if err := p.retain(ctx); err == nil {
		t.Error("one checkpoint is enough")
	}
	saved(3)
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		t.Fatal(err)
	}
	last := stream.CachedInfo().State.LastSeq
	for keep, want := range map[config.Keep]uint64{
		"1h": 1, "1ns": last, "1073741824": 1,
	} {
		if got, err := keptFrom(ctx, p.Broker.JS, stream, keep); err != nil || got < want {
			t.Errorf("%s: from %d, want %d, %v", keep, got, want, err)
		}
	}
	if err := p.retain(ctx); err != nil {
		t.Fatal(err)
	}
	if info, err := stream.Info(ctx); err != nil || info.State.FirstSeq < 2 ||
		info.State.FirstSeq > positions[1] {
		t.Errorf(
			"the log begins at %d, and checkpoints are at %v, %v", info.State.FirstSeq, positions,
			err,
		)
	}
	if holes, err := ingest.Holes(ctx, stream); err != nil || len(holes) > 0 {
		t.Errorf("what was removed counts as lost: %v, %v", holes, err)
	}
}
