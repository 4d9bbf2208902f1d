package incremental

import (
	"fmt"
	"testing"

	"gqlstream/graphstore"
)

// BenchmarkSolve makes one estimate of a community that is everybody, with and without one before
// it to start from.
func BenchmarkSolve(b *testing.B) {
	for _, classes := range []int{2, 10, 20} {
		for _, members := range []int{50, 2500, 100_000} {
			core := newCore(b, Config{
				Classes: classes, Emit: Emit{Threshold: 0.1},
				Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
			})
			log := newTown(1, classes, members, 3)
			batch := log.start()
			batch.Emit = true
			core.Step(batch)
			view := core.View()
			id, _ := view.FindCommunity("all")
			name := fmt.Sprintf("K=%d/n=%d", classes, members)
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					core.solve(id, view, &core.solvers[0], false)
				}
			})
			b.Run(name+"/exact", func(b *testing.B) {
				for b.Loop() {
					core.solve(id, view, &core.solvers[0], true)
				}
			})
			core.Close()
		}
	}
}
