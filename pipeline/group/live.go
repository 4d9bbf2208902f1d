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

// List returns the workers of a group that live, by name.
func List(ctx context.Context, js jetstream.JetStream, bucket string) ([]Presence, error) {
	kv, err := js.KeyValue(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("group: bucket %s: %w", bucket, err)
	}
	return list(ctx, kv)
}

// Drain asks a worker that lives to hand its shards over and to end, and returns when it has ended:
// when the others that stay estimate them. What is asked is forgotten as soon as a worker that
// dies, so it is asked again, also while servers elect.
func Drain(ctx context.Context, js jetstream.JetStream, bucket, worker string) error {
	var since time.Time // when the process that is asked began: one that takes its place is not
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
			return fmt.Errorf("group: no worker %s lives", worker)
		case (i < 0 || alone) && absent < absentMax:
			absent++ // servers that have just elected may not have all renewals yet
		case i < 0 || !since.IsZero() && !live[i].Since.Equal(since):
			return nil
		case alone:
			return fmt.Errorf(
				"group: no worker stays that could take the shards of %s over: stop it",
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
	drainHeardMax = time.Minute // that a worker may take to hear that it is to end
	absentMax     = 8           // looks at the list that must miss a worker for it to be gone
)

func drainKey(worker string) string { return "drain." + key(worker) }

func drainRequest(since time.Time) []byte { return []byte(since.UTC().Format(time.RFC3339Nano)) }

// key returns the key of a worker: keys allow few characters, names any.
func key(worker string) string { return fmt.Sprintf("worker.%016x", xxhash.Sum64String(worker)) }

// Rank returns the place of this worker among those that live in the order for something, 0
// for the first, and -1 where it hands its work over.
func (m *Member) Rank(of string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Index(order(m.live(), of), m.self.Worker)
}

// Place says who is to estimate a shard, and whether somebody does.
type Place struct {
	// of this worker among those that are to: 0 for the first, and -1 if it is none of them
	Order  int
	Served bool // another one of them says that it does
	// Awaited says that one of them before this worker, by name, does not yet. Of workers that must
	// stand still to take shards over one does at a time, so that of each shard another copy goes
	// on.
	Awaited bool
}

// Places returns the places of so many shards, of which there are to be so many copies.
func (m *Member) Places(shards, copies int) (places []Place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard, workers := range assign(m.live(), shards, copies) {
		served := slices.ContainsFunc(workers, func(name string) bool {
			return name != m.self.Worker && slices.Contains(m.workers[name].Shards, shard)
		})
		awaited := slices.ContainsFunc(workers, func(name string) bool {
			return name < m.self.Worker && !slices.Contains(m.workers[name].Shards, shard)
		})
		places = append(places, Place{slices.Index(workers, m.self.Worker), served, awaited})
	}
	return places
}

// assign returns the workers that estimate each shard, in their order. Shard after shard takes the
// first of its order that has room: no worker is the first, or the second, of more than its part of
// the shards. Of a worker that goes, what it had moves, and little else.
func assign(workers []string, shards, copies int) [][]string {
	all := make([][]string, shards)
	for range min(copies, len(workers)) {
		has := map[string]int{}
		for shard := range all {
			free := slices.DeleteFunc(order(workers, "shard "+Part(shard)),
				func(w string) bool { return slices.Contains(all[shard], w) })
			room := slices.IndexFunc(free,
				func(w string) bool { return has[w]*len(workers) < shards })
			next := free[max(room, 0)] // -1: those that have room estimate this shard already
			has[next]++
			all[shard] = append(all[shard], next)
		}
	}
	return all
}

// order returns workers in the order in which they are to do something, highest random weight
// first. Of a worker that goes, only what it was first for has another first.
func order(workers []string, of string) []string {
	weight := func(worker string) uint64 { return xxhash.Sum64String(worker + "\x00" + of) }
	ordered := slices.Clone(workers)
	slices.SortFunc(ordered, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
	return ordered
}
