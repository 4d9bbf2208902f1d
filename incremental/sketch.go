package incremental

import (
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/parallel"
	"gqlstream/incremental/tally"
)

// The second moments of communities are not linear in their members, so a dual cannot give them.
// They are estimated by random signs at the labels. With random signs s at the labels of a class,
// shifted to the sum zero, sum s a has the mean square sum (a - mean of a)². The kernel is
// symmetric, so sum s a is the sum over the members of a dual with the function s. So a few solves
// a class serve all communities (Alon, Matias and Szegedy 1996), instead of one solve a community.
// A sketch is such a solve, for one class and sketchFunctions signs, and each community has a
// running mean of its sketches; see tally.Spread. A sketch is divided over emissions: each
// continues it within its budget, on the present graph. Its labels are those from its beginning,
// without those that left since. The next class and the budgets depend on the log alone, not on the
// division of shards, so all workers solve for the same functions.

const (
	// sketchFunctions are two blocks, solved in parallel. The relative error of sum (a - mean of
	// a)² from one sketch is a half, the root of two over their number; that of a running mean is a
	// seventh to a fifth.
	sketchFunctions = 8
	// sketchTolerance bounds the error of a value as classTolerance does.
	sketchTolerance = 20
	// sketchEarned is the budget of an emission for sketches, in neighbours visited by a block of
	// functions (see diffusion.Relaxation): about a millisecond of one core, or ten on graphs of
	// millions of edges, where neighbours come from memory. At most the budget of sketchSaved
	// emissions accumulates, so that a quiet log is not followed by a long stop. A dual begins with
	// the budget of sketchFirst emissions, and with up to twice that after a history was read.
	sketchEarned             = 1 << 18
	sketchSaved, sketchFirst = 4, 1 << 9
	// sketchArriving multiplies it at an emission with arrivingShare more labels than the last one,
	// and while the newest community waits for a sketch of each class: second moments of half a
	// second ago took one share in a hundred .07 to .14 standard errors off.
	sketchArriving, arrivingShare = 16, 0.01
)

// sketchAll spends the accumulated budget. A core with a single emission makes all sketches at
// once.
func (d *sharedDual) sketchAll(view graphstore.View, earned float64) {
	saved, patient := sketchSaved*earned, d.core.config.Patient
	d.Credit = max(d.Credit, min(d.Credit+earned, saved))
	most := tally.SketchRounds * d.core.config.Classes
	for made := 0; made < most && (d.Credit > 0 || patient); made++ {
		visits := d.Credit
		if patient {
			visits = math.Inf(1)
		}
		d.Credit -= d.sketch(view, visits)
	}
	d.Credit = min(d.Credit, saved)
}

// sketch continues a sketch, or begins the next one, for this many visits. A complete sketch is
// added to all communities; a sketch of a class without labels is complete at once. It returns how
// many it has made.
func (d *sharedDual) sketch(view graphstore.View, visits float64) (visited float64) {
	c := d.core
	if d.signs == nil {
		at, f, n2 := c.tallies.Signs(view, d.Sketches, sketchFunctions)
		if d.Signed = n2; len(at) > 0 {
			d.signs = diffusion.NewRelaxation(diffusion.Config{
				Alpha: c.config.Alpha, Tolerance: d.toleranceOf(view, sketchTolerance),
				Functions: sketchFunctions,
			}, at, f)
		}
	}
	if d.signs != nil {
		done := false
		if visited, done = d.signs.Relax(view, visits); !done {
			return visited
		}
		n2 := d.Signed * d.signs.Labelled(view)
		parallel.Each(view.Communities(), func(i, _ int) {
			if id := graphstore.Community(i); c.owns(id, view) && c.tallies.KernelSum(id) > 0 {
				c.tallies.Sketch(id, view, d.dual, d.signs.Sum(id, view), n2, d.Sketches, c.time)
			}
		})
	}
	d.signs = nil
	d.Sketches++
	d.Waiting -= min(d.Waiting, 1)
	return visited
}
