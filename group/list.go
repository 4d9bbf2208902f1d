package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go/jetstream"
)

// List returns the workers of a group that live, by name.
func List(ctx context.Context, js jetstream.JetStream, bucket string) ([]Presence, error) {
	kv, err := js.KeyValue(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("group: bucket %s: %w", bucket, err)
	}
	live, err := list(ctx, kv)
	slices.SortFunc(live, func(a, b Presence) int { return cmp.Compare(a.Worker, b.Worker) })
	return live, err
}

// Drain asks a worker that lives to hand its shards over and to end, and returns when it has
// heard that: what is asked is forgotten as soon as a worker that dies, so it is asked again.
func Drain(ctx context.Context, js jetstream.JetStream, bucket, worker string) error {
	kv, err := js.KeyValue(ctx, bucket)
	if err != nil {
		return fmt.Errorf("group: bucket %s: %w", bucket, err)
	}
	var since time.Time // when the process that is asked began: one that takes its place is not
	for begun := time.Now(); ; {
		live, err := list(ctx, kv)
		if err != nil {
			return fmt.Errorf("group: bucket %s: %w", bucket, err)
		}
		i := slices.IndexFunc(live, func(p Presence) bool { return p.Worker == worker })
		switch {
		case i < 0 && since.IsZero():
			return fmt.Errorf("group: no worker %s lives", worker)
		case i < 0 || live[i].Drains || !since.IsZero() && !live[i].Since.Equal(since):
			return nil
		case time.Since(begun) > drainHeardMax:
			return fmt.Errorf("group: worker %s has not answered for %v", worker, drainHeardMax)
		}
		since = live[i].Since
		if _, err := kv.Put(ctx, drainKey(worker), drainRequest(since)); err != nil {
			return fmt.Errorf("group: bucket %s: %w", bucket, err)
		}
		time.Sleep(renewEvery)
	}
}

const drainHeardMax = time.Minute // that a worker may take to hear that it is to end

func drainKey(worker string) string { return "drain." + key(worker) }

func drainRequest(since time.Time) []byte { return []byte(since.UTC().Format(time.RFC3339Nano)) }

// key returns the key of a worker: keys allow few characters, names any.
func key(worker string) string { return fmt.Sprintf("worker.%016x", xxhash.Sum64String(worker)) }
