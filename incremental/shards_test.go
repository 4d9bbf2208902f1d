package incremental

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
)

// Workers that divide the shards must together publish the records of one worker with all
// shards, and have the same state, whichever worker takes over from another at a
// checkpoint.
func TestWorkersTogetherAreOne(t *testing.T) {
	const shards = 5
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(seed, 5))
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: true, RollOuts: seed%3 == 0},
		)
		config := withRules(seed, allMethods(stream.Config.Classes))
		if seed%3 > 0 {
			config = dualConfig(seed, stream.Config.Classes)
			config.Engine = []string{"", EngineDual}[seed%2]
		}
		config.Shards, config.HalfLife = shards, halfLifeOf(seed)
		crowded(&config, seed)
		togetherAreOne(t, seed, random, stream, config, 20, 4)
	}
}

// togetherAreOne holds workers that divide the shards of a history of so many batches among them,
// in another way after each checkpoint, against a core that has all and never stops.
func togetherAreOne(
	t *testing.T, seed uint64, random *rand.Rand, stream history, config Config, batches, every int,
) {
	t.Helper()
	whole := newCore(t, config)
	workers := divided(random, config)
	cores := make([]*Core, len(workers))
	for i := range workers {
		cores[i] = newCore(t, workers[i])
	}
	for i := range batches {
		batch := stream.Next()
		batch.Checkpoint = i%every == every-1
		want, got := whole.Step(batch).Estimates, []quant.Estimate(nil)
		for _, core := range cores {
			got = append(got, core.Step(batch).Estimates...)
		}
		slices.SortStableFunc(
			got,
			func(a, b quant.Estimate) int { return cmp.Compare(a.Community, b.Community) },
		)
		if !reflect.DeepEqual(want, got) { // far faster than Diff, which takes nil for empty
			if d := diff.Diff(want, got); d != "" {
				t.Fatalf(
					"seed %d batch %d: one (-) and %d workers (+):\n%s", seed, i, len(cores), d,
				)
			}
		}
		if !batch.Checkpoint {
			continue
		}
		state := sameParts(t, seed, saved(t, seed, whole), cores)
		for _, core := range cores {
			core.Close()
		}
		workers = divided(random, config)
		cores = make([]*Core, len(workers))
		for i := range workers {
			cores[i] = restore(t, seed, state, workers[i])
		}
	}
	for _, core := range append(cores, whole) {
		core.Close()
	}
}

// crowded lets emissions bear but a few communities, and some configurations have auto alone.
func crowded(config *Config, seed uint64) {
	if seed/2%2 == 0 {
		config.Emit = Emit{Threshold: 0.1, AtLeastEvery: time.Second}
		config.Work.Solving = float64(
			(8*config.Classes*config.Classes + solveWork) * int(1+seed/4%3*8),
		)
	}
	if seed%5 < 2 {
		config.Estimates = optionsOf(quant.Auto)
	}
}

// divided gives each of one to four workers some of the shards, each shard to somebody and
// some to two.
func divided(random *rand.Rand, config Config) (workers []Config) {
	for range 1 + random.IntN(4) {
		config.Owned = []int{}
		workers = append(workers, config)
	}
	for shard := range config.Shards {
		i := random.IntN(len(workers))
		workers[i].Owned = append(workers[i].Owned, shard)
	}
	return workers
}

// sameParts checks that the saved state of each of some cores is a part of the state of one
// core with all shards, and returns that state.
func sameParts(t *testing.T, seed uint64, whole []Section, cores []*Core) []Section {
	t.Helper()
	all, parts := sectionsOf(whole, ""), map[string]int{}
	for _, core := range cores {
		for _, section := range saved(t, seed, core) {
			parts[section.Name]++
			if !bytes.Equal(all[section.Name], section.Data) {
				t.Fatalf(
					"seed %d: section %s of a worker with the shards %v "+
						"is not that of one with all",
					seed,
					section.Name,
					core.ownedShards(),
				)
			}
		}
	}
	for name := range all {
		want := len(cores)
		if _, ok := SectionShard(name); ok {
			want = 1
		}
		if parts[name] != want {
			t.Fatalf(
				"seed %d: %d of %d workers save section %s, want %d", seed, parts[name], len(cores),
				name, want,
			)
		}
	}
	return whole
}

// A core that gives a shard up must go on with the others as if it never had it.
func TestDisownedShardLeavesNoTrace(t *testing.T) {
	for seed := range uint64(6) {
		stream := eventtest.New(seed, eventtest.Config{Erase: true, Attributes: seed%2 == 0})
		config := allMethods(stream.Config.Classes)
		config.Shards = 3
		core := newCore(t, config)
		config.Owned = []int{0, 2}
		twin := newCore(t, config)
		for i := range 12 {
			batch := stream.Next()
			batch.Checkpoint = i%4 == 3
			records, want := core.Step(batch).Estimates, twin.Step(batch).Estimates
			if i < 5 {
				records = slices.DeleteFunc(
					records,
					func(e quant.Estimate) bool { return ShardOf(e.Community, 3) == 1 },
				)
			}
			if d := diff.Diff(want, records, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("seed %d batch %d: never (-) and until now (+):\n%s", seed, i, d)
			}
			if i == 4 {
				core.Disown(1)
			}
			if i > 4 && batch.Checkpoint {
				sameState(t, seed, saved(t, seed, twin), saved(t, seed, core))
			}
		}
		core.Close()
		twin.Close()
	}
}

// The number of shards must decide the digest, because it decides budgets, and one shard be
// no other configuration than none.
func TestShardsAreInTheDigest(t *testing.T) {
	config := Config{Classes: 2}
	none := config.Digest()
	config.Shards = 1
	one := config.Digest()
	config.Shards, config.Owned = 2, []int{1}
	two := config.Digest()
	config.Owned = nil
	if none != one || one == two || two != config.Digest() {
		t.Errorf("digests %s, %s, %s", none, one, two)
	}
	if config.Shards = shardsMax + 1; config.Validate() == nil {
		t.Error("too many shards are valid")
	}
	counts := [4]int{}
	for i := range 4000 {
		counts[ShardOf(event.NumberID(uint64(i)).String(), 4)]++
	}
	if slices.Min(counts[:]) < 900 {
		t.Errorf("communities by shard: %v", counts)
	}
}
