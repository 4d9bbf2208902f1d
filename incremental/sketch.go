package incremental

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/parallel"
	"gqlstream/ingest/event"
)

// The second moments of many communities are estimated from the side of the labels. With random signs s at the labels of a
// class, whose sum is taken to zero, sum s a has the mean square sum (a - mean of a)²; and since the kernel is symmetric it is
// the sum over the members of a dual whose function is s. So some solves a class serve all communities (Alon, Matias and
// Szegedy 1996), where every four communities took as many. Signs hang on vertex and function alone, so that an estimate is
// wrong in the same way from one time to the next.

const (
	// sketchLeast and sketchAll bound the functions of a class: as many as make sketchAll of all classes, but sketchLeast. An
	// estimate of sum (a - mean of a)² is off by the root of two over their number.
	sketchLeast, sketchAll = 16, 64
	// sketchTolerance multiplies the tolerance of a kernel for these solves, whose values are small because signs cancel.
	sketchTolerance = 0.3
	// sketchShare is the least number of communities that are due, over that of functions, for all to be estimated.
	sketchShare = 0.5
)

// sketchDue estimates the second moments of all communities of a shard if enough of them are due, and returns its work, 0 if
// they are not.
func (r *refreshes) sketchDue(c *Core, shard int, due []dueRefresh, view graphstore.View) (work float64) {
	functions := max(sketchLeast, sketchAll/c.config.Classes) / diffusion.TogetherMax * diffusion.TogetherMax
	if !c.tallies.Sketchable() || float64(len(due)) < sketchShare*float64(functions*c.config.Classes) {
		return 0
	}
	var all []graphstore.Community
	for id := range graphstore.Community(view.Communities()) {
		if c.shardOf(id, view) == shard && c.refreshable(id, view) {
			all = append(all, id)
		}
	}
	apart, passes := sketch(c, all, functions, view)
	c.masses.(*sharedDual).dual.SumResiduals(view, c.crowds(view)) // as they are, not as the emission before left them
	for i, id := range all {
		c.tallies.RefreshSketched(id, view, c.masses.(*sharedDual).dual, apart[i], c.position, c.time)
		c.tallies.Move(id)
	}
	price := float64(refreshAgain)
	if due[0].first {
		price = refreshFirst
	}
	return price * refreshPass * passes * float64(2*view.Edges()+view.Vertices())
}

// sketch returns, for each community and class, an estimate of the sum of (a - mean of a)² over the labels of the class, from
// so many functions a class, and how many passes over the graph that took.
func sketch(c *Core, communities []graphstore.Community, functions int, view graphstore.View) (apart [][]float64, passes float64) {
	const each = diffusion.TogetherMax
	labels, blocks := labelsByClass(c, view), functions/each
	sums, work := make([][]float64, len(labels)*blocks), make([]float64, len(labels)*blocks)
	parallel.Each(len(sums), func(b, _ int) {
		sources := make([][]diffusion.SourceChange, each)
		for i := range sources {
			sources[i] = signed(labels[b/blocks], uint64(b%blocks*each+i), view)
		}
		sums[b], work[b] = squares(c, sources, communities, view)
	})
	apart = make([][]float64, len(communities))
	for i := range apart {
		apart[i] = make([]float64, len(labels))
		for b := range sums {
			apart[i][b/blocks] += sums[b][i] / float64(functions)
		}
	}
	for _, w := range work {
		passes += w
	}
	return apart, passes
}

// squares solves for some functions and returns for each community the sum of the squares of what they are over its sources.
func squares(c *Core, sources [][]diffusion.SourceChange, communities []graphstore.Community, view graphstore.View) (sums []float64, passes float64) {
	config := c.config.diffusion()
	config.Tolerance = min(sketchTolerance*config.Tolerance, 1)
	solved, err := diffusion.SolveTogether(view, config, sources)
	if err != nil {
		panic(err) // the configuration was validated
	}
	sums = make([]float64, len(communities))
	for at, id := range communities {
		var s [diffusion.TogetherMax]float64
		view.ForMembers(id, func(v graphstore.Vertex, multiplicity uint32) {
			if view.Label(v).Class == event.NoClass {
				for i := range s {
					s[i] += float64(float64(multiplicity) * solved.Value(i, v))
				}
			}
		})
		for _, x := range s {
			sums[at] += float64(x * x)
		}
	}
	return sums, float64(solved.Passes())
}

// labelsByClass lists the calibration labels with a prediction of each class.
func labelsByClass(c *Core, view graphstore.View) [][]graphstore.Vertex {
	labels := make([][]graphstore.Vertex, c.config.Classes)
	for v := range graphstore.Vertex(view.Vertices()) {
		if l := view.Label(v); l.Class != event.NoClass && l.Role == event.Calibrate && view.Prediction(v) != nil {
			labels[l.Class] = append(labels[l.Class], v)
		}
	}
	return labels
}

// signed returns the sources of a dual: at each label its sign, less the mean of the signs, times its degree.
func signed(labels []graphstore.Vertex, function uint64, view graphstore.View) []diffusion.SourceChange {
	list, sum := make([]diffusion.SourceChange, len(labels)), 0.0
	for i, v := range labels {
		list[i] = diffusion.SourceChange{V: v, Change: signOf(v, function)}
		sum += list[i].Change
	}
	mean := sum / float64(max(len(labels), 1))
	for i := range list {
		list[i].Change = (list[i].Change - mean) * (view.Degree(list[i].V) + 1)
	}
	return list
}

// signOf returns 1 or -1, by a hash (splitmix64) of a vertex and a function.
func signOf(v graphstore.Vertex, function uint64) float64 {
	x := (uint64(v)<<16 | function) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return 1 - 2*float64(x>>63)
}
