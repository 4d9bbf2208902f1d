package sinks

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Newest returns the cursor of a reader that has read everything that is published now.
// Of several shards it is that of the one that is furthest behind, so that what others
// have published beyond it may come again.
func Newest(ctx context.Context, js jetstream.JetStream, c ReaderConfig) (newest Cursor, err error) {
	for shard := range max(c.Shards, 1) {
		w := &Writer{config: WriterConfig{Streams: StreamsConfig{Names: c.Names}, Shard: shard, Log: c.Log}, js: js}
		found, err := w.lastMark(ctx)
		if err != nil {
			return Cursor{}, fmt.Errorf("sinks: stream %s: %w", c.Names.Estimates, err)
		}
		w.config.Config = found.Config // whoever published it
		w.adopt(found)
		at := Cursor{Position: w.Published(), Shard: max(c.Shards, 1) - 1}
		if at.Position == 0 {
			return Cursor{}, nil
		}
		if at.Sequence = found.sequence - 1; found.Part == found.Parts && !found.torn && c.Shards <= 1 {
			at.Sequence = found.sequence + uint64(found.Records)
		}
		if shard == 0 || at.Position < newest.Position {
			newest.Position, newest.Shard = at.Position, at.Shard
		}
		if shard == 0 || at.Sequence < newest.Sequence {
			newest.Sequence = at.Sequence
		}
	}
	newest.Stamp, err = stampOf(ctx, js, c.Names.Estimates, newest.Sequence)
	return newest, err
}

// stampOf returns the broker's time of a message; of one that is not there 0.
func stampOf(ctx context.Context, js jetstream.JetStream, name string, sequence uint64) (int64, error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("sinks: stream %s: %w", name, err)
	}
	stream.CachedInfo().Config.AllowDirect = false
	m, err := stream.GetMsg(ctx, sequence)
	if err != nil {
		return 0, nil //nolint:nilerr // the feed then reads from the beginning
	}
	return m.Time.UnixNano(), nil
}
