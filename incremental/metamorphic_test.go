package incremental

import (
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gqlstream/graphstore"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
)

// replayed runs the log of a seed through a fresh core and returns every estimate.
func replayed(t *testing.T, seed uint64, batches int, change func(*Config)) []quant.Estimate {
	t.Helper()
	stream := eventtest.New(seed, eventtest.Config{Weighted: true, Erase: true, TTL: true})
	config := allMethods(stream.Config.Classes)
	if change != nil {
		change(&config)
	}
	core := newCore(t, config)
	defer core.Close()
	var all []quant.Estimate
	for range batches {
		all = append(all, core.Step(stream.Next()).Estimates...)
	}
	return all
}

// The same batches must give the same estimates bit for bit, on one processor and
// on several.
func TestEstimatesDoNotDependOnProcessors(t *testing.T) {
	for seed := range uint64(40) {
		sameOnProcessors(t, seed, 20, nil)
	}
}

// sameOnProcessors replays the log of a seed on one processor and on four.
func sameOnProcessors(t *testing.T, seed uint64, batches int, change func(*Config)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := replayed(t, seed, batches, change)
	runtime.GOMAXPROCS(4)
	if four := replayed(t, seed, batches, change); !reflect.DeepEqual(one, four) {
		t.Fatalf("seed %d: GOMAXPROCS 1 (-) against 4 (+):\n%s", seed, cmp.Diff(one, four))
	}
}

// A core that followed every step and a cold one that saw everything before its
// first emission must hold the same integers, and kernels that differ by no more
// than the two certificates.
func TestWarmEqualsCold(t *testing.T) {
	for seed := range uint64(300) {
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: true, Erase: true, TTL: seed%2 == 0},
		)
		warm := newCore(t, allMethods(stream.Config.Classes))
		cold := newCore(t, allMethods(stream.Config.Classes))
		for i := range 15 {
			batch := stream.Next()
			last := i == 14
			batch.Emit = batch.Emit || last
			warm.Step(batch)
			batch.Emit = last
			cold.Step(batch)
		}
		compareKernels(t, seed, warm, cold)
		warm.Close()
		cold.Close()
	}
}

func compareKernels(t *testing.T, seed uint64, a, b *Core) {
	t.Helper()
	for id := range graphstore.Community(a.View().Communities()) {
		var off, total float64
		for v := range graphstore.Vertex(a.View().Vertices()) {
			off += math.Abs(massOf(a, id)(v) - massOf(b, id)(v))
		}
		total = a.tallies.KernelSum(id)
		if bound := (a.kernels.Certificate(id) + b.kernels.Certificate(id)) * total; off > bound+
			1e-9 {
			t.Fatalf(
				"seed %d community %d: masses differ by %g, certificates allow %g", seed, id, off,
				bound,
			)
		}
	}
}

// Kernels that are recomputed must give records on every emission too, and the
// constant one must agree with the methods that use no kernel.
func TestRecomputedKernels(t *testing.T) {
	for _, kernel := range []string{"truncated", "lazy", "shortest-path", "constant"} {
		for seed := range uint64(20) {
			records := replayed(t, seed, 12, func(c *Config) { c.Kernel = kernel })
			shares := map[string][]float64{}
			for _, e := range records {
				checkEstimates(t, seed, 0, records)
				shares[e.Community+"/"+e.Method] = e.Prevalence
				if kernel == "constant" && e.Method == "sis" {
					if diff := cmp.Diff(shares[e.Community+"/pacc"], e.Prevalence,
						approximately(1e-9)); diff != "" {
						t.Fatalf(
							"seed %d %s: pacc (-), sis with constant kernel (+):\n%s", seed,
							e.Community, diff,
						)
					}
				}
			}
		}
	}
}

func approximately(tolerance float64) cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= tolerance })
}
