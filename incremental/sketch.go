package incremental

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/parallel"
	"gqlstream/incremental/tally"
)

// The second moments of communities beside a dual are not linear in their members, so no dual follows them. They are estimated
// from the side of the labels. With random signs s at the labels of a class, whose sum is taken to zero, sum s a has the mean
// square sum (a - mean of a)²; and since the kernel is symmetric it is the sum over the members of a dual whose function is s. So
// some solves a class serve all communities (Alon, Matias and Szegedy 1996), where a solve for each would take as many as there
// are. A sketch is such a dual, of one class and sketchFunctions signs, and each community keeps a running mean of its sketches; see
// tally.Spread. Which class is next, and what emissions have earned, hangs on the log alone and not on who estimates
// what: all workers solve for the same.

const (
	// sketchFunctions are two blocks, which are solved for side by side. What one sketch says of sum (a - mean of a)² is off
	// by half of it, a root of two over their number; a running mean by a seventh to a fifth.
	sketchFunctions = 8
	// sketchTolerance bounds the error of a value as classTolerance does.
	sketchTolerance = 20
	// sketchEarned is the work that an emission earns for sketches, in neighbours visited by a pass over the graph for one
	// source: about half a millisecond of one core. As much as sketchSaved emissions earn can be saved up, so that a quiet log
	// is not followed by a long stop. A dual begins with what sketchFirst of them do, and with up to twice that after a
	// history was read.
	sketchEarned             = 1 << 19
	sketchSaved, sketchFirst = 4, 1 << 8
	// sketchArriving multiplies it at an emission with arrivingShare more labels than the last one, and while the newest
	// community waits for a sketch of each class: second moments of half a second ago took one share in a hundred .07 to .14
	// standard errors off.
	sketchArriving, arrivingShare = 16, 0.01
	// sketchBlocks are in a sketch, and sketchPass is what a pass for one costs, in passes for one source.
	sketchBlocks, sketchPass = 2, 2
)

// sketchAll makes as many sketches as emissions have earned. A core that makes a single emission has all of them at once.
func (d *sharedDual) sketchAll(view graphstore.View, earned float64) {
	saved := sketchSaved * earned
	d.Credit = max(d.Credit, min(d.Credit+earned, saved))
	for made := 0; made < tally.SketchRounds*d.core.config.Classes && (d.Credit > 0 || d.core.config.Patient); made++ {
		d.Credit -= d.sketch(view)
	}
	d.Credit = min(d.Credit, saved)
}

// sketch makes the next sketch, unless the class has no labels, tells all communities, and returns its work.
func (d *sharedDual) sketch(view graphstore.View) (work float64) {
	c, number := d.core, d.Sketches
	d.Sketches++
	d.Waiting -= min(d.Waiting, 1)
	values := c.tallies.AppendSigns(nil, view, number, sketchFunctions)
	if len(values) == 0 {
		return 0
	}
	signs := newDual(&c.config, sketchFunctions, d.toleranceOf(view, sketchTolerance))
	signs.Solve(view, values, signs.Tolerance())
	parallel.Each(view.Communities(), func(i, _ int) {
		if id := graphstore.Community(i); c.owns(id, view) && c.tallies.KernelSum(id) > 0 {
			c.tallies.Sketch(id, view, d.dual, signs, number, c.time)
		}
	})
	return sketchBlocks * sketchPass * float64(max(signs.Work().Iterations, 1)) * float64(2*view.Edges()+view.Vertices())
}
