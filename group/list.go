package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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

// Drain asks a worker that lives to hand its shards over and to end.
func Drain(ctx context.Context, js jetstream.JetStream, bucket, worker string) error {
	live, err := List(ctx, js, bucket)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(live, func(p Presence) bool { return p.Worker == worker }) {
		return fmt.Errorf("group: no worker %s lives", worker)
	}
	kv, err := js.KeyValue(ctx, bucket)
	if err == nil {
		_, err = kv.Put(ctx, drainKey(worker), nil)
	}
	if err != nil {
		return fmt.Errorf("group: bucket %s: %w", bucket, err)
	}
	return nil
}

func drainKey(worker string) string { return "drain." + key(worker) }

// key returns the key of a worker: keys allow few characters, names any.
func key(worker string) string { return fmt.Sprintf("worker.%016x", xxhash.Sum64String(worker)) }
