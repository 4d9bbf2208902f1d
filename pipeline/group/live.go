package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// List returns the live workers of a group, by name.
func List(ctx context.Context, js jetstream.JetStream, bucket string) ([]Presence, error) {
	kv, err := js.KeyValue(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("group: bucket %s: %w", bucket, err)
	}
	return list(ctx, kv)
}

// Drain asks a live worker to hand its shards over and to end, and returns when it has ended and
// the others estimate them. The request is dropped as quickly as a dead worker's presence, so it is
// repeated, also while servers elect.
func Drain(ctx context.Context, js jetstream.JetStream, bucket, worker string) error {
	var since time.Time // when the asked process began: a process that replaces it is not asked
	for answered, absent := time.Now(), 0; ; time.Sleep(renewEvery) {
		var live []Presence
		kv, err := js.KeyValue(ctx, bucket)
		if err == nil {
			live, err = list(ctx, kv)
		}
		i := slices.IndexFunc(live, func(p Presence) bool { return p.Worker == worker })
		alone := i >= 0 && !live[i].Drains &&
			!slices.ContainsFunc(live,
				func(p Presence) bool { return p.Worker != worker && !p.Drains })
		switch {
		case err != nil:
		case i < 0 && since.IsZero():
			return fmt.Errorf("group: no worker %s is running", worker)
		case (i < 0 || alone) && absent < absentMax:
			absent++ // newly elected servers may not have all renewals yet
		case i < 0 || !since.IsZero() && !live[i].Since.Equal(since):
			return nil
		case alone:
			return fmt.Errorf(
				"group: no other worker can take the shards of %s: stop the worker instead",
				worker)
		case !live[i].Drains:
			since = live[i].Since
			_, err = kv.Put(ctx, drainKey(worker), drainRequest(since))
		default:
			since, answered, absent = live[i].Since, time.Now(), 0
		}
		if err != nil && (!request.Passes(err) || ctx.Err() != nil) {
			return err
		}
		if time.Since(answered) > drainHeardMax {
			return errors.Join(
				fmt.Errorf("group: worker %s has not answered for %v", worker, drainHeardMax), err)
		}
	}
}

const (
	drainHeardMax = time.Minute // how long a worker may take to notice the request
	absentMax     = 8           // consecutive lists without the worker before it counts as gone
)

func drainKey(worker string) string { return "drain." + key(worker) }

func drainRequest(since time.Time) []byte { return []byte(since.UTC().Format(time.RFC3339Nano)) }

// key returns the key of a worker: keys allow few characters, worker names any.
func key(worker string) string { return fmt.Sprintf("worker.%016x", xxhash.Sum64String(worker)) }

// Rank returns the index of this worker in the order of the live workers for a task: 0 for the
// first, and -1 if it hands its work over.
func (m *Member) Rank(of string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Index(order(m.live(), of), m.self.Worker)
}

// Duty describes this worker's part in a shard.
type Duty struct {
	// Order is this worker's index among the workers for the shard: 0 for the first, -1 if it is
	// none of them.
	Order  int
	Served bool // another worker reports that it estimates the shard
	// Awaited says that an earlier worker for the shard, by name, does not estimate it yet. Workers
	// that must pause to take shards over do so one at a time, so that another copy of each shard
	// goes on.
	Awaited bool
}

// Places returns this worker's place for each shard; each shard gets that many copies.
func (m *Member) Places(shards, copies int) (places []Duty) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard, workers := range assign(m.live(), shards, copies) {
		served := slices.ContainsFunc(workers, func(name string) bool {
			return name != m.self.Worker && slices.Contains(m.workers[name].Shards, shard)
		})
		awaited := slices.ContainsFunc(workers, func(name string) bool {
			return name < m.self.Worker && !slices.Contains(m.workers[name].Shards, shard)
		})
		places = append(places, Duty{slices.Index(workers, m.self.Worker), served, awaited})
	}
	return places
}

// assign returns the workers of each shard, in order. Each shard in turn takes the first workers of
// its order that have capacity: no worker is first, or second, for more than its part of the
// shards. If a worker leaves, its shards move, and few others.
func assign(workers []string, shards, copies int) [][]string {
	all := make([][]string, shards)
	for range min(copies, len(workers)) {
		has := map[string]int{}
		for shard := range all {
			free := slices.DeleteFunc(order(workers, "shard "+Part(shard)),
				func(w string) bool { return slices.Contains(all[shard], w) })
			room := slices.IndexFunc(free,
				func(w string) bool { return has[w]*len(workers) < shards })
			next := free[max(room, 0)] // -1: the workers with capacity already have this shard
			has[next]++
			all[shard] = append(all[shard], next)
		}
	}
	return all
}

// order returns workers in the order for a task, highest random weight first. If a worker leaves,
// only the tasks that it was first for get another first worker.
func order(workers []string, of string) []string {
	weight := func(worker string) uint64 { return xxhash.Sum64String(worker + "\x00" + of) }
	ordered := slices.Clone(workers)
	slices.SortFunc(ordered, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
	return ordered
}
