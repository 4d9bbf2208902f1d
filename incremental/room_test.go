package incremental

import (
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/quant"
)

// A community that is not asked, because too little happened to it, must not have moved by the threshold: in fewer than one
// case of a hundred, since what happens is added up by first-order rates.
func TestCommunitiesThatAreNotAskedHaveNotMoved(t *testing.T) {
	for _, classes := range []int{2, 5, 20} {
		config := Config{Classes: classes, Engine: EngineDual, Emit: Emit{Threshold: 0.1}}
		core, solver := newCore(t, config), quant.Solver{}
		over, all, asked := 0, 0, 0
		for b := range simulatedSteps(t, classes, 3000, 150, .1, 12*time.Second, 10*time.Second) {
			core.Step(b)
			view := core.View()
			for id := range graphstore.Community(view.Communities()) {
				if !b.Emit || core.loading || !core.warm() || int(id) >= len(core.published) || !core.published[id].exists() {
					continue
				}
				if all++; !core.passed(id) {
					asked++
					continue
				}
				read := core.masses.Statistics(id, view)
				read.Posterior = core.posteriors.of(id, view, read.Statistics)
				if solver.Movement(read.Statistics, core.config.Estimates[0], core.published[id].snapshots[0]) > config.Emit.Threshold {
					over++
				}
			}
		}
		core.Close()
		t.Logf("%d classes: %d of %d communities had moved, %d had none or no room", classes, over, all-asked, asked)
		if over*100 > all-asked || all < 9000 {
			t.Errorf("%d classes: %d of %d communities had moved by more than the threshold", classes, over, all-asked)
		}
	}
}
