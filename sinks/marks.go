package sinks

import (
	"cmp"
	"context"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Mark is the newest mark of a shard in the log out.
type Mark struct {
	Shard    int
	Position uint64 // the shard is complete up to here
	Writer   Identity
	Config   string   // digest of the configuration
	Classes  []string // nil: not said
	Sequence uint64
}

// Marks returns the newest mark of every shard, in order.
func Marks(ctx context.Context, js jetstream.JetStream, names Names) (list []Mark, err error) {
	stream, err := js.Stream(ctx, names.Estimates)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(names.markSubjects()))
	if err != nil {
		return nil, err
	}
	stream.CachedInfo().Config.AllowDirect = false // only the leader knows
	for subject := range info.State.Subjects {
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			return nil, err
		}
		shard, isShard := names.shardOf(subject)
		if mark, err := parseMark(m.Data); err == nil && isShard {
			list = append(list, Mark{Shard: shard, Position: mark.Position, Writer: mark.Writer, Config: mark.Config, Classes: mark.Classes, Sequence: m.Sequence})
		}
	}
	slices.SortFunc(list, func(a, b Mark) int { return cmp.Compare(a.Shard, b.Shard) })
	return list, nil
}

// WatchMarks calls take for the newest mark of every shard, and for each that is stored afterwards,
// until ctx ends. Of emissions in several parts only the last one counts, and only marks of a log.
func WatchMarks(ctx context.Context, js jetstream.JetStream, names Names, log string, take func(Mark)) error {
	consumer, err := js.OrderedConsumer(ctx, names.Estimates, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{names.markSubjects()}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return err
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		at, err := m.Metadata()
		mark, markErr := parseMark(m.Data())
		shard, isShard := names.shardOf(m.Subject())
		if err != nil || markErr != nil || !isShard || mark.Log != log || mark.Part < mark.Parts {
			return
		}
		take(Mark{Shard: shard, Position: mark.Position, Writer: mark.Writer, Sequence: at.Sequence.Stream})
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	consuming.Stop()
	return nil
}
