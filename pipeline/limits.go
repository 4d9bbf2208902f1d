package pipeline

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// limitLog sees to it that the log has limits for what its events may make a run hold:
// those that this machine's memory bears, where it has none and the configuration leaves
// some open. It says which hold.
func limitLog(ctx context.Context, js jetstream.JetStream, log string, c incremental.Config, report *slog.Logger) error {
	configured, memory := c.Limits, machineMemory("")
	var derived event.Limits // with unknown memory: what the indices can count
	if memory > 0 {
		derived = graphstore.LimitsOf(memory, c.Classes)
	}
	recorded, err := ingest.RecordLimits(ctx, js, log, derived)
	if err != nil {
		return err
	}
	now := configured.Or(recorded)
	report.Info("events beyond these are refused", "vertices", now.Vertices, "edges", now.Edges,
		"communities", now.Communities, "memberships", now.Memberships, "memory", memory)
	if recorded != derived && configured.Or(derived).Edges < now.Edges {
		report.Warn("the log's limits were derived from more memory than this machine has; limits.* in the configuration bound it",
			"edges", now.Edges, "here", derived.Edges)
	}
	return nil
}

const fillWarned = 0.9 // of a limit: from there on it is said

func (s *runStats) watchFill(fills []graphstore.Fill, warn func(text string, args ...any)) {
	for _, f := range fills {
		if float64(f.Used) >= fillWarned*float64(f.Max) && !s.nearlyFull[f.Kind] {
			s.nearlyFull[f.Kind] = true
			warn("a limit is nearly reached; events beyond it are refused", "what", f.Kind, "used", f.Used, "limit", f.Max)
		}
	}
}

const quarantineLookEvery = 10 * time.Second

type quarantineFill struct {
	js     jetstream.JetStream
	stream string
	last   atomic.Pointer[web.Quarantine] // nil until it is known
}

func (q *quarantineFill) watch(ctx context.Context) error {
	return repeat(ctx, quarantineLookEvery, func() error {
		if stream, err := q.js.Stream(ctx, q.stream); err == nil { // else others say what is wrong
			has, most := stream.CachedInfo().State, stream.CachedInfo().Config.MaxBytes
			q.last.Store(&web.Quarantine{
				Entries: has.Msgs, Bytes: has.Bytes, BytesMax: uint64(max(most, 0)), Removed: has.LastSeq - has.Msgs,
			})
		}
		return nil
	})
}

// LimitFrom gives a core the limits in the settings of a log, if its source is one.
func LimitFrom(source ingest.Source, core *incremental.Core) {
	if log, ok := source.(*ingest.JetStreamSource); ok {
		core.Limit(log.Limits())
	}
}
