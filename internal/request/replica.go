package request

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Replica says what one server lacks of a stream.
type Replica struct {
	Server string // empty: a server alone, which has no name in answers
	Lacks  uint64 // messages between the first and the last that the leader has
}

// replicaWait is how long a server that lags has to take what it lacks.
const replicaWait = 2 * time.Second

// ProbeReplica asks one of the servers that keep a stream, which the broker chooses, how many
// messages it has. Only the leader answers for a stream; but a reader that is kept in memory by one
// server reads that server's own copy, and says how much there is for it. A stream that discards
// its oldest may seem to lack some that have just gone: discards are those that the caller does not
// mind.
func ProbeReplica(
	ctx context.Context,
	js jetstream.JetStream,
	name string,
	discards uint64,
) (r Replica, err error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return r, err
	}
	consumer, err := js.CreateConsumer(ctx, name, jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1,
		InactiveThreshold: 2 * replicaWait,
	})
	if err != nil {
		return r, err
	}
	info := consumer.CachedInfo()
	defer func() { _ = js.DeleteConsumer(context.WithoutCancel(ctx), name, info.Name) }()
	if info.Cluster != nil {
		r.Server = info.Cluster.Leader
	}
	wanted := func() uint64 {
		s := stream.CachedInfo().State
		return s.LastSeq - s.FirstSeq + min(s.Msgs, 1)
	}
	want := wanted()
	if info.NumPending >= want {
		return r, nil
	}
	if err := Pause(ctx, replicaWait); err != nil {
		return r, err
	}
	if _, err := stream.Info(ctx); err != nil {
		return r, err
	}
	want = min(want, wanted())
	if info, err = consumer.Info(ctx); err != nil {
		return r, err
	}
	if has := info.NumPending + discards; has < want {
		r.Lacks = want - info.NumPending
	}
	return r, nil
}
