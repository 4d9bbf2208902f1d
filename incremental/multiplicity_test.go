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

// Counting every member of a community so many times more must change nothing but how many members
// there are: not a share, an error, an effective number or a flag, up to multiplicities that are as
// large as an event can say. Errors of changes take all members for new ones when their squares are
// too large to count.
func TestMultiplicitiesHaveNoUnit(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		// Not from one on, so that the squares of small masses have all their digits.
		log := eventtest.Config{Weighted: seed%2 == 0, Erase: true, Times: 1 << 10}
		few := eventtest.New(seed, log)
		times := []uint32{1 << 6, 1 << 13, 1 << 19}[seed%3]
		log.Times *= times
		many := eventtest.New(seed, log)
		config := allMethods(few.Config.Classes)
		config.Communities = nil
		config.HalfLife = halfLifeOf(seed / 3)
		if config.Engine = EnginePrimal; seed/2%2 == 1 {
			config = sharing(config)
			config.Engine = EngineDual
		}
		if seed%5 == 0 {
			config.Kernel, config.Engine = []string{"truncated", "lazy"}[seed/5%2], ""
		}
		once, often := newCore(t, config), newCore(t, config)
		for i := range 12 {
			one, other := few.Next(), many.Next()
			if i == 11 { // kernels that are computed when they are read are so at emissions
				one.Emit, other.Emit = true, true
			}
			want, got := once.Step(one).Estimates, often.Step(other).Estimates
			for i := range got {
				got[i].Members /= float64(times)
				got[i].Labelled /= float64(times)
			}
			want, got = without(want, "ml", "auto"), without(got, "ml", "auto") // see adjusted
			compared += len(got)
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 3e-4),
				cmpopts.IgnoreFields(quant.Estimate{}, "SEChange", "Moved", "Revised",
					"SERevised")); diff != "" {
				t.Fatalf(
					"seed %d position %d: once (-), %d times (+):\n%s", seed, once.Position(),
					times, diff,
				)
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

// The privacy floor counts different members with a prediction or a label, whatever their
// multiplicity. None of them may outweigh the others. A community on the floor is
// published.
func TestPrivacyFloorCountsKnownPeople(t *testing.T) {
	const floor = 8
	for _, engine := range []string{EnginePrimal, EngineDual} {
		core := newCore(t, Config{Classes: 2, Engine: engine, MembersMin: floor})
		defer core.Close()
		var batch event.Batch
		join := func(community string, v, times uint64) {
			batch.Members = append(batch.Members, event.Member{
				Community: community, Vertex: event.NumberID(v), Multiplicity: uint32(times),
			})
		}
		for v := range uint64(floor) {
			units := batch.Units(2)
			units[0] = event.One
			batch.Predictions = append(batch.Predictions,
				event.Prediction{Vertex: event.NumberID(v), Units: units})
			join("enough", v, 1)
			join("unequal", v, 1+v%3)
			if v < floor-1 {
				join("few", v, 100)
				join("labelled", v, 1)
			}
			if v == 0 {
				join("one is heavy", v, 1e9)
			} else {
				join("one is heavy", v, 1)
			}
			join("one is known", v+100, 1) // nobody has these
		}
		join("one is known", 0, 1)
		batch.Labels = append(batch.Labels,
			event.Label{Vertex: event.NumberID(50), Class: 1})
		join("labelled", 50, 1)
		published := map[string]bool{
			"enough": true, "unequal": true, "labelled": true,
			"few": false, "one is heavy": false, "one is known": false,
		}
		for _, e := range feed(core, batch, true) {
			if want := published[e.Community]; e.Suppressed == want {
				t.Errorf("%s: %s of %v members: published %t, want %t",
					engine, e.Community, e.Members, !e.Suppressed, want)
			}
			if e.Suppressed && (e.Members != 0 || len(e.Prevalence) > 0) {
				t.Errorf("%s: a suppressed record says something: %+v", engine, e)
			}
		}
	}
}

// without leaves out the estimates of some methods.
func without(list []quant.Estimate, methods ...string) []quant.Estimate {
	return slices.DeleteFunc(
		list,
		func(e quant.Estimate) bool { return slices.Contains(methods, e.Method) },
	)
}
