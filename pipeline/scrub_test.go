package pipeline

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/internal/checkpoint"
	"gqlstream/internal/request"
)

// The scrub of a run must find nothing on intact data, also after the log's beginning was
// removed, and must name a damaged checkpoint and a damaged record.
func TestTheScrubOfARunFindsDamage(t *testing.T) {
	settings := settingsOfServer(t)
	said := &sayings{}
	p, err := Open(t.Context(), settings, Options{Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
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
	for range 40 {
		if _, err := p.Broker.JS.Publish(ctx, "gql.edge", []byte(`{"src":1,"dst":2}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Broker.JS.Publish(ctx, "gql.control",
		[]byte(`{"op":"checkpoint"}`)); err != nil {
		t.Fatal(err)
	}
	var positions []uint64
	for len(positions) == 0 {
		if positions, err = p.Checkpoints.Dir.List(); err != nil ||
			request.Pause(ctx, 10*time.Millisecond) != nil {
			t.Fatalf("no checkpoint: %v\n%s", err, said)
		}
	}
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		t.Fatal(err)
	}
	if err := PurgeLog(ctx, p.Broker.JS, stream, 5); err != nil {
		t.Fatal(err)
	}
	scrubbed := func(want ...string) {
		t.Helper()
		faults, read, err := p.damages(ctx)
		if err != nil || read < 30 || len(faults) != len(want) {
			t.Fatalf("%v, %d messages, %v; want %v", faults, read, err, want)
		}
		for i, text := range want {
			if !strings.Contains(faults[i].Error(), text) {
				t.Errorf("fault %v, want %q", faults[i], text)
			}
		}
	}
	scrubbed()
	p.scrub(ctx)
	if got := p.observed.deployment().Scrub; got.Ended.IsZero() || got.Faults != 0 {
		t.Errorf("the scrub is shown as %+v", got)
	}
	dir := filepath.Join(checkpointsIn(settings.State), "00000000000000000099")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(checkpointsIn(settings.State),
		checkpoint.FileName(positions[0])))); err != nil {
		t.Fatal(err)
	}
	scrubbed("checkpoint 99")
	if err := CheckRecord([]byte("ATS/1.0\r\n\r\n{}")); err == nil {
		t.Error("a record with a piece of its headers is taken for one")
	}
}
