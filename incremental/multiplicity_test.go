package incremental

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
)

// Counting every member of a community so many times more must change nothing but how
// many members there are: not a share, an error, an effective number or a flag, up to
// multiplicities that are as large as an event can say.
func TestMultiplicitiesHaveNoUnit(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		const few = 1 << 10 // so that the squares of small masses have all their digits
		times := []uint32{1 << 6, 1 << 13, 1 << 19}[seed%3]
		stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0, Erase: true})
		config := allMethods(stream.Config.Classes)
		config.Communities = nil
		config.HalfLife = halfLifeOf(seed / 3)
		config.Engine = []string{EnginePrimal, EngineDual}[seed/2%2]
		if config.HalfLife > 0 {
			config.Engine = EnginePrimal
		}
		once, often := newCore(t, config), newCore(t, config)
		for range 12 {
			batch := stream.Next()
			want := multiplied(once, batch, few)
			got := multiplied(often, batch, times)
			for i := range got {
				got[i].Members /= float64(times)
				got[i].Labelled /= float64(times)
			}
			want, got = without(want, "ml", "auto"), without(got, "ml", "auto") // see adjusted
			compared += len(got)
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 1e-6)); diff != "" {
				t.Fatalf("seed %d position %d: once (-), %d times (+):\n%s", seed, batch.Last, times, diff)
			}
		}
		if err := checkCore(often); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		once.Close()
		often.Close()
	}
	if compared < 1000 {
		t.Fatalf("only %d estimates compared", compared)
	}
}

// multiplied steps the core through a batch in which multiplicities are so many times
// larger than they were.
func multiplied(core *Core, batch *event.Batch, times uint32) []quant.Estimate {
	for i := range batch.Members {
		batch.Members[i].Multiplicity *= times
	}
	return core.Step(batch).Estimates
}

// without leaves out the estimates of some methods.
func without(list []quant.Estimate, methods ...string) []quant.Estimate {
	return slices.DeleteFunc(list, func(e quant.Estimate) bool { return slices.Contains(methods, e.Method) })
}
