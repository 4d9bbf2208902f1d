package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
	"gqlstream/pipeline/group"
)

const (
	retainAfter = time.Minute // when the log is first examined for removable messages
	// later on: each examination reads two checkpoints, if there is something to remove
	retainEvery = time.Hour
	retainLeast = 20 // removes at least one part in this many of the log
)

// watchRetention applies log.keep. In a group one worker does.
func (p *Pipeline) watchRetention(ctx context.Context) error {
	wait := retainAfter
	for request.Pause(ctx, wait) == nil {
		wait = retainEvery
		if p.group != nil && !p.group.leads("retention") {
			continue
		}
		if err := p.retain(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("the log cannot be shortened", "because", err)
		}
	}
	return nil
}

// retain removes the messages that neither log.keep nor a checkpoint needs.
func (p *Pipeline) retain(ctx context.Context) error {
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return err
	}
	state := stream.CachedInfo().State
	first, err := keptFrom(ctx, p.Broker.JS, stream, p.settings.Log.Keep)
	if err != nil || first < state.FirstSeq+state.Msgs/retainLeast+1 {
		return err
	}
	needed, err := Needed(ctx, p.Broker.JS, p.Checkpoints.Dir, p.settings.NATS.Prefix)
	if err != nil {
		return err
	}
	if first = min(first, needed.From()); first <= state.FirstSeq {
		return nil
	}
	if err := PurgeLog(ctx, p.Broker.JS, stream, first); err != nil {
		return err
	}
	p.log.Info("removed messages older than log.keep", "from", state.FirstSeq, "to", first-1)
	return nil
}

// keptFrom returns the position of the first message to keep.
func keptFrom(
	ctx context.Context, js jetstream.JetStream, stream jetstream.Stream, keep config.Keep,
) (uint64, error) {
	state := stream.CachedInfo().State
	span, bytes, err := keep.Limits()
	if err != nil {
		return 0, err
	}
	if span == 0 {
		if state.Bytes <= bytes || state.Msgs == 0 {
			return state.FirstSeq, nil
		}
		each := state.Bytes/state.Msgs + 1
		return state.FirstSeq + (state.Bytes-bytes)/each, nil
	}
	since := time.Now().Add(-span)
	reader, err := js.CreateConsumer(ctx, stream.CachedInfo().Config.Name, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since, Replicas: 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: time.Second,
	})
	if err != nil {
		return 0, err
	}
	info := reader.CachedInfo()
	_ = js.DeleteConsumer(ctx, info.Stream, info.Name) // otherwise the broker drops it soon
	return max(state.LastSeq+1-min(info.NumPending, state.LastSeq), state.FirstSeq), nil
}

// NeededLog describes the part of a log that must stay.
type NeededLog struct {
	Checkpoints [2]checkpoint.Manifest // the two newest, verified
	// oldest position of a graph in a group's store; 0: none
	Graph  uint64
	Bucket string // the bucket that stores it
}

// From returns the first position that stays.
func (n NeededLog) From() uint64 {
	if n.Graph > 0 {
		return min(n.Graph, n.Checkpoints[1].Position)
	}
	return n.Checkpoints[1].Position
}

// Needed verifies the two newest checkpoints, which must be intact, of one configuration and of
// this log, and looks up where a new worker of a group would start.
func Needed(
	ctx context.Context, js jetstream.JetStream, dir *checkpoint.Dir, prefix string,
) (n NeededLog, err error) {
	positions, err := dir.List()
	if err != nil {
		return n, err
	}
	if len(positions) < len(n.Checkpoints) {
		return n, fmt.Errorf(
			"%d checkpoints exist, and a deletion needs two;"+
				" let the run write them", len(positions))
	}
	for i := range n.Checkpoints {
		if n.Checkpoints[i], err = dir.Verify(positions[i]); err != nil {
			return n, fmt.Errorf("%w; nothing was deleted. Start run, which writes others", err)
		}
		_, id := ResumeOf(n.Checkpoints[i])
		if err := id.Check(ctx, js); err != nil {
			return n, err
		}
	}
	if n.Checkpoints[0].Config != n.Checkpoints[1].Config {
		return n, errors.New("the two newest checkpoints are of different configurations;" +
			" let run write another one first")
	}
	n.Graph, n.Bucket, err = group.OldestGraph(ctx, js, prefix)
	return n, err
}

// PurgeLog removes the messages before a position, and records the purge.
func PurgeLog(
	ctx context.Context, js jetstream.JetStream, stream jetstream.Stream, first uint64,
) error {
	if err := ingest.RecordFirst(ctx, js, stream, first); err != nil {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSequence(first))
}
