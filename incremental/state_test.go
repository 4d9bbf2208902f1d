package incremental

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gqlstream/graphstore"
	"gqlstream/ingest/event/eventtest"
)

// A core restored from a checkpoint anywhere in a history must go on with the same
// estimates, bit for bit, as one that never stopped, and save the same bytes.
func TestRestoredCoreGoesOnBitForBit(t *testing.T) {
	kernels := []string{"ppr", "ppr", "ppr", "truncated", "constant", "lazy"}
	for seed := range uint64(60) {
		stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: true, RollOuts: seed%3 > 0})
		config := withRules(seed, allMethods(stream.Config.Classes))
		config.Kernel = kernels[seed%uint64(len(kernels))]
		config.Windows = windowsOf(seed)
		config.HalfLife = halfLifeOf(seed)
		core, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			batch := stream.Next()
			batch.Checkpoint = i%4 == 3
			if result := core.Step(batch); !result.Vacuumed {
				continue
			}
			twin := restored(t, seed, core, config)
			next := stream.Next()
			a, b := core.Step(next), twin.Step(next)
			if diff := cmp.Diff(a.Estimates, b.Estimates); diff != "" {
				t.Fatalf("seed %d batch %d: without (-) and with a restart (+):\n%s", seed, i, diff)
			}
			core.Close()
			core = twin // the next checkpoints are of restored cores
		}
		core.Close()
	}
}

// windowsOf returns windows that some batches of an eventtest history are longer
// than, or none.
func windowsOf(seed uint64) graphstore.Windows {
	if seed%2 == 0 {
		return graphstore.Windows{}
	}
	return graphstore.Windows{Edges: 90 * time.Second, Labels: 60 * time.Second, Predictions: 40 * time.Second}
}

// restored saves a core, restores it, and checks that a second save of either is
// the same.
func restored(t *testing.T, seed uint64, core *Core, config Config) *Core {
	t.Helper()
	saved, err := core.Save()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	sections := map[string][]byte{}
	for _, s := range saved {
		sections[s.Name] = s.Data
	}
	twin, err := Restore(config, sections)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	again, err := twin.Save()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for i, section := range saved {
		if again[i].Name != section.Name || !bytes.Equal(again[i].Data, section.Data) {
			t.Fatalf("seed %d: section %s differs when it is saved after a restore", seed, section.Name)
		}
	}
	return twin
}

// A state that lacks a part must be refused, whichever part it is.
func TestIncompleteStateIsRefused(t *testing.T) {
	stream := eventtest.New(1, eventtest.Config{})
	config := allMethods(stream.Config.Classes)
	core, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	batch := stream.Next()
	batch.Emit, batch.Checkpoint = true, true
	core.Step(batch)
	saved, err := core.Save()
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range saved {
		sections := map[string][]byte{}
		for _, s := range saved {
			if s.Name != missing.Name {
				sections[s.Name] = s.Data
			}
		}
		if twin, err := Restore(config, sections); err == nil {
			twin.Close()
			t.Errorf("a state without %s was restored", missing.Name)
		}
	}
}
