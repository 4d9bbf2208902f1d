package request

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Replica describes the messages of a stream that one server lacks.
type Replica struct {
	Server string // empty: a single server, which has no name in answers
	Lacks  uint64 // messages between the leader's first and last
}

// Copies lists the servers of a stream that answer, and the servers that do not. A single server
// has no name.
func Copies(stream jetstream.Stream) (online, offline []string) {
	cluster := stream.CachedInfo().Cluster
	if cluster == nil || stream.CachedInfo().Config.Replicas <= 1 {
		return []string{""}, nil
	}
	online = append(online, cluster.Leader)
	for _, peer := range cluster.Replicas {
		if peer.Offline {
			offline = append(offline, peer.Name)
			continue
		}
		online = append(online, peer.Name)
	}
	return online, offline
}

// replicaWait is how long a lagging server gets to catch up.
const replicaWait = 2 * time.Second

// ProbeReplica asks one server of a stream how many messages it has. The broker chooses the server.
// Only the leader answers requests about a stream, but a consumer in the memory of a server reads
// the copy of that server and reports its size. A stream that discards its oldest messages may seem
// to lack messages that it has just discarded; discards is the number that the caller accepts.
func ProbeReplica(
	ctx context.Context, js jetstream.JetStream, name string, discards uint64,
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
