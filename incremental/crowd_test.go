package incremental

import (
	"fmt"
	"math"
	"testing"

	"gqlstream/campaign"
	"gqlstream/graphstore"
	"gqlstream/quant"
)

// After every batch of a random history the sums over the members of a community must be those of a recount,
// records that follow from them must say what all members say, and a restart must leave no trace.
func TestCrowdsFollowRandomHistories(t *testing.T) {
	histories := campaign.Size(t, "GQLSTREAM_CROWDS", 40)
	kept, followed, worst := 0, 0, 0.0
	for seed := campaign.Seed(t, 0); seed < uint64(histories); seed++ {
		stream, classes := historyOf(seed)
		config := autoAlone(seed, classes)
		config.crowdMembers, config.Emit.Threshold = 1, 0.05
		if seed%3 == 1 {
			config.Emit.AtLeastEvery = 1 // so that a record follows where little moves
		}
		core := newCore(t, config)
		for i := range 25 {
			batch := stream.Next()
			batch.Emit = batch.Emit || i%2 == 1
			for _, e := range checkedStep(t, seed, i, core, batch).Estimates {
				k, f, off := besideAllMembers(t, core, e)
				kept, followed, worst = kept+k, followed+f, max(worst, off)
				if off > 5e-4 {
					t.Errorf("seed %d batch %d: %s: a share is %g off what all members say", seed, i, e.Community, off)
				}
			}
		}
		core.Close()
		stream, _ = historyOf(seed)
		restarts{batches: 12, every: 4}.leaveNoTrace(t, seed, stream, config)
	}
	if followed < histories/4 || kept <= followed {
		t.Errorf("%d histories: %d of %d records followed from sums", histories, followed, kept)
	}
	t.Logf("%d of %d records followed from sums, the worst share is off by %g", followed, kept, worst)
}

// besideAllMembers returns whether sums over the members of the community of a record are kept, whether
// the record followed from such sums, and how far its shares are from those that all members say.
func besideAllMembers(t *testing.T, core *Core, e quant.Estimate) (kept, followed int, off float64) {
	t.Helper()
	view := core.View()
	id, known := view.FindCommunity(e.Community)
	if !known || e.Suppressed || core.posteriors.state.Crowd(id) == nil {
		return 0, 0, 0
	}
	read := core.masses.Statistics(id, view)
	read.Posterior = core.posteriors.of(graphstore.Community(id), view, read.Statistics)
	if read.Posterior == nil || read.Posterior.Crowd == nil {
		return 0, 0, 0
	}
	if read.Posterior.Crowd.Turned > 0 {
		followed = 1
	}
	read.Posterior.Crowd = nil
	var want quant.Estimate
	err := new(quant.Solver).Estimate(&want, read.Statistics, core.config.Estimates[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range want.Prevalence {
		off = max(off, math.Abs(q-e.Prevalence[i]))
	}
	return 1, followed, off
}

// BenchmarkRecord is one record, and what it takes to see that none is due, of a community that is everybody.
func BenchmarkRecord(b *testing.B) {
	for _, classes := range []int{2, 10, 20} {
		for _, members := range []int{100, 2500, 100_000} {
			core := newCore(b, Config{
				Classes: classes, Engine: EngineDual, Emit: Emit{Threshold: 0.1},
				Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
			})
			log := newTown(1, classes, members, 3)
			batch := log.start()
			batch.Emit = true
			core.Step(batch)
			view := core.View()
			id, _ := view.FindCommunity("all")
			name := fmt.Sprintf("K=%d/n=%d", classes, members)
			b.Run(name+"/record", func(b *testing.B) {
				for b.Loop() {
					core.solve(id, view, &core.solvers[0], false)
				}
			})
			b.Run(name+"/exact", func(b *testing.B) {
				for b.Loop() {
					core.solve(id, view, &core.solvers[0], true)
				}
			})
			b.Run(name+"/due", func(b *testing.B) {
				for b.Loop() {
					core.matters(id, view, &core.solvers[0])
				}
			})
			core.Close()
		}
	}
}
