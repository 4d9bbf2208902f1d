package incremental

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
)

// A core restored from a checkpoint anywhere in a history must go on with the same
// estimates, bit for bit, as one that never stopped, and save the same bytes.
func TestRestoredCoreContinuesBitForBit(t *testing.T) {
	kernels := []string{"ppr", "ppr", "ppr", "truncated", "constant", "lazy"}
	for seed := range uint64(60) {
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: seed%2 == 0, Erase: true, TTL: true, RollOuts: seed%3 > 0,
			Audits: seed%2 == 0, Times: 1 << (seed / 6 % 2 * 24), Attributes: seed%4 == 1,
		})
		config := withRules(seed, allMethods(stream.Config.Classes))
		config.Kernel = kernels[seed%uint64(len(kernels))]
		config.Windows = windowsOf(seed)
		config.HalfLife = halfLifeOf(seed)
		if seed/6%2 == 1 {
			crowded(&config, seed)
		}
		restarts{batches: 20, every: 4}.leaveNoTrace(t, seed, stream, config)
	}
}

// The same with the methods of a usual run, which share one dual, over longer histories. In that of
// the last seed the only posts end before a checkpoint, after which no evidence ages any more.
func TestRestoredDualContinuesBitForBit(t *testing.T) {
	for seed := range uint64(61) {
		if seed == 60 {
			seed = 595
		}
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: seed%2 == 0, Erase: true, TTL: true, RollOuts: seed%3 > 0,
			Posts: seed%5 == 0, Audits: seed%2 == 0, Attributes: seed%3 == 0,
		})
		config := withRules(seed, Config{
			Classes:   stream.Config.Classes,
			Estimates: optionsOf(quant.Auto, quant.PCC, quant.MLPE),
			Windows:   windowsOf(seed),
		})
		restarts{batches: 40, every: 4}.leaveNoTrace(t, seed, stream, config)
	}
}

// restarts is a history of so many batches that is stopped, and restored from a
// checkpoint, after every few of them.
type restarts struct{ batches, every int }

// history makes the batches of a log.
type history interface{ Next() *event.Batch }

// leaveNoTrace compares a core that never stops with one that is restored from its saved
// state at every checkpoint. Estimates, predictions and saved bytes must be equal, also of
// a copy that is encoded after the next step, or when its core is closed.
func (r restarts) leaveNoTrace(t *testing.T, seed uint64, stream history, config Config) {
	t.Helper()
	core, twin := newCore(t, config), newCore(t, config)
	var state, copied []Section
	for i := range r.batches {
		batch := stream.Next()
		batch.Checkpoint = i%r.every == r.every-1
		a, b := core.Step(batch), twin.Step(batch)
		if !reflect.DeepEqual(a.Estimates, b.Estimates) {
			t.Fatalf(
				"seed %d batch %d: without (-) and with restarts (+):\n%s", seed, i,
				cmp.Diff(a.Estimates, b.Estimates),
			)
		}
		samePredictions(t, seed, core, twin)
		if err := Encode(copied); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sameState(t, seed, state, copied)
		state, copied = nil, nil
		if a.Compacted {
			state = saved(t, seed, core)
			var err error
			if copied, err = core.Copy(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			left, err := twin.Copy()
			if twin.Close(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := Encode(left); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			sameState(t, seed, state, left)
			twin = restore(t, seed, state, config)
		}
	}
	core.Close()
	twin.Close()
}

// windowsOf returns windows that some batches of an eventtest history are longer
// than, or none.
func windowsOf(seed uint64) graphstore.Windows {
	if seed%2 == 0 {
		return graphstore.Windows{}
	}
	return graphstore.Windows{
		Edges:       90 * time.Second,
		Labels:      60 * time.Second,
		Predictions: 40 * time.Second,
	}
}

// restored saves a core, restores it, and checks that a second save of either is
// the same.
func restored(t *testing.T, seed uint64, core *Core, config Config) *Core {
	t.Helper()
	state := saved(t, seed, core)
	twin := restore(t, seed, state, config)
	sameState(t, seed, state, saved(t, seed, twin))
	return twin
}

func saved(t *testing.T, seed uint64, core *Core) []Section {
	t.Helper()
	state, err := core.Sections()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return state
}

func restore(t *testing.T, seed uint64, state []Section, config Config) *Core {
	t.Helper()
	core, err := Restore(config, sectionsOf(state, ""))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return core
}

// sectionsOf returns the sections of a state by name, but for one.
func sectionsOf(state []Section, without string) map[string][]byte {
	sections := map[string][]byte{}
	for _, s := range state {
		if s.Name != without {
			sections[s.Name] = s.Data
		}
	}
	return sections
}

// sameState checks that two states are the same bytes.
func sameState(t *testing.T, seed uint64, a, b []Section) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("seed %d: %d sections, and %d after a restart", seed, len(a), len(b))
	}
	for i, section := range a {
		if b[i].Name != section.Name || !bytes.Equal(b[i].Data, section.Data) {
			t.Fatalf(
				"seed %d: section %s is saved as other bytes after a restart",
				seed,
				section.Name,
			)
		}
	}
}

// A state without one of its parts must be refused, whichever part it is.
func TestIncompleteStateIsRefused(t *testing.T) {
	stream := eventtest.New(1, eventtest.Config{})
	config := allMethods(stream.Config.Classes)
	core := newCore(t, config)
	defer core.Close()
	batch := stream.Next()
	batch.Emit, batch.Checkpoint = true, true
	core.Step(batch)
	state := saved(t, 1, core)
	for _, missing := range state {
		if twin, err := Restore(config, sectionsOf(state, missing.Name)); err == nil {
			twin.Close()
			t.Errorf("a state without %s was restored", missing.Name)
		}
	}
}
