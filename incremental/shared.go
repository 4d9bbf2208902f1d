package incremental

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// sharedDual keeps one dual for all communities, so that an edge costs the same for five
// communities and for 100,000. It has one function for each class: the weight g of the label's age
// (one without a half-life) at calibration labels of the class, and zero elsewhere. The first
// moments A1 of a community are sums of y over its members. Where an estimate reads posteriors it
// has K functions more, of the labels' residuals: g r_i = g (y_i - pi_i), times residualScale. It
// follows the graph with every step, and labels and posteriors at emissions. The second moments A2
// are not linear in the members: they are estimated; see sketch.go.
type sharedDual struct {
	core  *Core
	dual  *diffusion.Dual
	scale float64               // of the functions of residuals; see residualScale
	signs *diffusion.Relaxation // of the sketch that is being made; nil: there is none
	measured
}

// measured says how far labels are from the members of communities, see measureReach, and which
// sketches were made.
type measured struct {
	Reach  float64              // the least of any community, at most 1
	Lowest float64              // of the communities measured in this round
	Next   graphstore.Community // to be asked
	Labels float64              // as of the last emission, each by its weight

	Credit   float64 // work that sketches may do, in neighbours visited
	Sketches uint64  // made so far
	// of the labels of the one that is being made: the sum of the squares of their weights
	Signed  float64
	Waiting uint32 // sketches until the newest community has one of each class
}

const (
	// dualStartShare divides the tolerance at the start of a dual, so that the first batches need
	// no pushes.
	dualStartShare = 4
	// Bounds of the error of a value, in eta of the share of a class: of a class, classTolerance,
	// or with many classes classesTolerance times the root of their number; of a residual,
	// residualTolerance with two classes, growing with the power residualPower of the classes.
	classTolerance, classesTolerance = 7, 2.55
	residualTolerance, residualPower = 1.6, 0.75
	// reachUsual is the mean value of a community, over the share of labels, below which the
	// tolerance falls with the least, down to reachLeast. An emission asks communities of
	// reachMembers, and of as many more that all have been asked when a tenth of the labels is new.
	reachUsual, reachLeast    = 0.5, reachMin / 2
	reachMembers, reachGrowth = 2048, 0.1
	// toleranceSlack is how many times the wanted tolerance that of a dual may be.
	toleranceSlack = 1.25
	// dualToleranceMin is the tolerance below which rounding decides.
	dualToleranceMin = 1e-11
)

// newShared returns a dual of the present graph, to take the place of fields.
func newShared(c *Core, view graphstore.View) *sharedDual {
	d := &sharedDual{core: c, scale: c.config.residualScale(), measured: measured{
		Reach: 1, Lowest: 1, Labels: c.tallies.LabelMass(),
		Credit: sketchFirst * c.config.sketchesEarned(), Waiting: uint32(c.config.Classes),
	}}
	d.begin(view)
	d.dual.Prepare(view)
	d.measureReach(view, math.Inf(1))
	return d
}

// begin solves for the dual from nothing.
func (d *sharedDual) begin(view graphstore.View) {
	c := d.core
	dual, err := diffusion.NewDual(diffusion.Config{
		Alpha: c.config.Alpha, Tolerance: min(d.tolerance(view), 1),
		Functions: c.config.functions(),
	})
	if err != nil {
		panic(err) // the configuration was validated
	}
	d.dual = dual
	// The list is as large as all rows: nothing holds it while the dual is solved for.
	d.dual.Solve(view, d.changes(view), d.dual.Tolerance()/dualStartShare)
	c.tallies.TouchAll()
}

// functions returns how many functions the dual has.
func (c Config) functions() int {
	if c.readsPosterior() {
		return 2 * c.Classes
	}
	return c.Classes
}

// residualScale is the factor of residuals in the dual, so that their error is residualTolerance
// where that of classes is classTolerance: nearly all of the error of a share comes from residuals.
func (c Config) residualScale() float64 {
	power := math.Pow(max(float64(c.Classes), 2)/2, residualPower)
	return c.classPart() / (residualTolerance * power)
}

// sketchesEarned returns the work that an emission earns for sketches.
func (c Config) sketchesEarned() float64 { return cmp.Or(c.Work.Sketches, sketchEarned) }

// classPart is the bound on the error of a value of a class, in eta of the share of a class.
func (c Config) classPart() float64 {
	return max(classTolerance, classesTolerance*math.Sqrt(float64(c.Classes)))
}

// changes lists the changes from the dual's functions to the present ones, at present and former
// calibration labels.
func (d *sharedDual) changes(view graphstore.View) (list []diffusion.ValueChange) {
	gain, _ := d.core.tallies.LabelGains(view)
	want := make([]float64, d.dual.Functions())
	for _, v := range d.core.tallies.Rows() {
		d.functionsAt(v, view.Label(v).Class, gain(v), want)
		list = diffusion.AppendChange(list, v, d.dual.Function(v), want)
	}
	var left []graphstore.Vertex
	for _, v := range d.dual.Valued() {
		if d.core.pairs.Calibrates(v) == event.NoClass {
			left = append(left, v)
		}
	}
	slices.Sort(left) // as they are after a restart
	for _, v := range left {
		list = diffusion.AppendChange(list, v, d.dual.Function(v), nil)
	}
	return list
}

// functionsAt writes the functions at a calibration label of this class and weight to dst.
func (d *sharedDual) functionsAt(v graphstore.Vertex, class event.Class, g float64, dst []float64) {
	k := d.core.config.Classes
	clear(dst)
	dst[class] = g
	if len(dst) == k {
		return
	}
	state := d.core.posteriors.state
	if state.Epoch() == nil {
		return
	}
	g *= state.Epoch().LabelWeights()[class]
	for i, x := range state.LabelPosterior(v) {
		if dst[k+i] = -x; i == int(class) {
			dst[k+i]++
		}
		dst[k+i] *= float64(g * d.scale)
	}
}

// tolerance returns the tolerance of a value for the share of vertices that are calibration labels
// now: classTolerance of eta times the part of a class in that share, because Dual.Estimate removes
// all but a few hundredths of the errors of sums. With many classes it is larger by the root of
// their number, because standard errors fall with the root of a share. No share is off by more than
// .05 standard errors at the 99th percentile, with 20 labels or with many.
func (d *sharedDual) tolerance(view graphstore.View) float64 {
	return d.toleranceOf(view, d.core.config.classPart())
}

// toleranceOf returns eta times this part of a class's share of the labels, and less where labels
// are far.
func (d *sharedDual) toleranceOf(view graphstore.View, part float64) float64 {
	c := d.core
	share := c.tallies.LabelMass() / float64(max(view.Vertices(), 1)) / float64(c.config.Classes)
	if share == 0 {
		return c.config.Tolerance
	}
	return max(part*d.Reach*share*c.config.Tolerance, min(dualToleranceMin, c.config.Tolerance))
}

// Follow implements kernels. Its cost depends on the changes of the step, not on the number of
// communities; pushes wait for the emission. If labels age and their landmark has moved forward,
// all weights and the dual are divided by one power of two, which is exact. If the landmark has
// moved back, because the youngest labels left, the dual starts again.
func (d *sharedDual) Follow(view graphstore.View, delta *graphstore.Delta) {
	c := d.core
	if halvings := c.tallies.Halvings(); halvings < 0 {
		d.begin(view)
	} else {
		d.dual.Halve(halvings)
		d.dual.Follow(view, delta, nil)
	}
	if d.signs != nil {
		for _, v := range delta.Erased {
			d.signs.Forget(v)
		}
		for i := range delta.Labels {
			// a source now; its own function is most of its value
			if l := &delta.Labels[i]; l.After.Class == event.NoClass {
				d.signs.Forget(l.V)
			}
		}
	}
	if int(delta.FirstCommunity) < view.Communities() {
		d.Waiting = uint32(c.config.Classes)
	}
}

// settle pushes what the last steps and these values have left to push. A push touches the
// communities of the vertex that it changes.
func (d *sharedDual) settle(view graphstore.View, values []diffusion.ValueChange) {
	d.dual.Update(view, nil, values)
	d.core.tallies.TouchSources(view, d.dual.Touched())
}

// flush makes the dual that of a core that is restored: its sums are counted again.
func (d *sharedDual) flush(view graphstore.View) {
	d.settle(view, nil)
	d.dual.ForgetSums()
}

// measureReach notes the least reach of a community. It measures some communities, also those of
// other shards, so that every worker has the same dual, and the following ones the next time. It
// measures all at once if labels have grown by reachGrowth, because the least reach with a few
// labels says nothing about many.
func (d *sharedDual) measureReach(view graphstore.View, growth float64) {
	c := d.core
	most, end := reachMembers, graphstore.Community(view.Communities())
	if growth >= reachGrowth {
		most, d.Next, d.Lowest = math.MaxInt, 0, 1
	} else if growth > 0 {
		all := 0
		for id := range end {
			all += 1 + c.tallies.Vertices(id, view)
		}
		most += int(growth / reachGrowth * float64(all))
	}
	for ; d.Next < end; d.Next++ {
		if most <= 0 {
			d.Reach = min(d.Reach, d.Lowest)
			return
		}
		if mean := c.tallies.Reach(d.Next, d.dual); mean > 0 {
			d.Lowest = min(d.Lowest, c.reach(mean, view))
		}
		most -= 1 + c.tallies.Vertices(d.Next, view)
	}
	d.Reach, d.Lowest, d.Next = d.Lowest, 1, 0
}

// retune has the dual keep the tolerance that is wanted, and reports whether it was lowered. To
// raise it takes nothing. To lower it takes pushes all over the graph, so it is left until the
// tolerance is toleranceSlack times the wanted one.
func (d *sharedDual) retune(view graphstore.View) (lowered bool) {
	now, want := d.dual.Tolerance(), d.tolerance(view)
	lowered = now > toleranceSlack*want
	if lowered || now < want {
		d.dual.Retune(want)
	}
	return lowered
}

// Ready implements kernels: sketches are made, and the tolerance follows the share of labels and
// their masses.
func (d *sharedDual) Ready(view graphstore.View) {
	c := d.core
	d.retune(view)
	d.settle(view, d.changes(view))
	d.dual.Prepare(view)
	earned, labels := c.config.sketchesEarned(), c.tallies.LabelMass()
	if labels > (1+arrivingShare)*d.Labels || d.Waiting > 0 {
		earned *= sketchArriving
	}
	if early := c.loading || d.Labels == 0; early && c.config.Emit.Threshold > 0 {
		// labels would be others soon
		d.Credit = max(d.Credit, min(d.Credit+earned, 2*sketchFirst*c.config.sketchesEarned()))
	} else {
		d.sketchAll(view, earned)
	}
	d.measureReach(view, labels/d.Labels-1)
	d.Labels = labels
	if d.retune(view) {
		d.settle(view, nil)
		d.dual.Prepare(view)
	}
}

// Statistics implements kernels.
func (d *sharedDual) Statistics(id graphstore.Community, view graphstore.View) reading {
	c := d.core
	s := c.tallies.DualStatistics(
		id, view, c.sums, d.dual, c.affordsExact(id, view, exactTermsShared),
	)
	s.MassMin = max(s.MassMin, reachMin*s.KernelSum/float64(max(view.Vertices(), 1)))
	return reading{Statistics: s, engine: EngineDual, spread: c.tallies.Spread(id)}
}

// labelResiduals returns the sum of g a r over the labels for one community.
func (d *sharedDual) labelResiduals(id graphstore.Community, view graphstore.View) []float64 {
	sums, _ := d.dual.Estimate(id)
	_, scale := d.core.tallies.LabelGains(view)
	sums = sums[d.core.config.Classes:]
	for i := range sums {
		sums[i] *= scale / d.scale
	}
	return sums
}

// Certificate implements kernels: it bounds the error of every tally, for any community.
func (d *sharedDual) Certificate(graphstore.Community) float64 {
	return 2 * d.dual.Certificate() // see Dual.Estimate
}

// varianceAge notes in a record how old the second moments are that it rests on, or that
// a bound stands for them.
func (r reading) varianceAge(now event.Time, record *quant.Estimate) {
	record.Engine = r.engine
	switch {
	case r.engine == "":
	case r.spread.Bounds(r.ClassA1):
		record.Flags = append(record.Flags, quant.FlagVarianceBound)
	case r.spread != nil:
		record.VarianceAge = time.Duration(now - r.spread.Time).Seconds()
	}
}
