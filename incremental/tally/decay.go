package tally

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant/stats"
)

// With a half-life h a calibration label that was last asserted at t counts g = 2^((t -
// landmark)/h): forward decay (Cormode, Shkapenyuk, Srivastava and Xu, ICDE 2009). The factor is
// fixed for a row, so time alone changes no sum of these rows (freshness is another factor; see
// pairs.Age), and a common factor of all labels does not show in an estimate. The landmark is the
// end of the epoch of the youngest label, an exact function of the graph.

const (
	epochHalfLives = 4  // that an epoch lasts: g of the youngest label is above 2^-4
	decayHalfLives = 40 // behind the landmark, after which a label counts nothing

	// HalfLifeMax keeps times of landmarks within 64 bits.
	HalfLifeMax = 20 * 365 * 24 * time.Hour
)

// Why not weigh labels by their age at each emission, as one would on paper? Then the dual, which
// holds the weights, would be another one at each emission, however little had happened. Why not
// drop the old ones at a bound? A label that leaves at once moves an estimate by more than its
// weight is worth, and the record would speak of a change that nobody made.

// decay has the landmark of the ages of labels; 0 without a half-life.
type decay struct {
	landmark uint64 // end of the epoch of the youngest row, or 0
	before   uint64 // the landmark when the step began
}

// gain returns the weight g of a label; one without a half-life.
func (t *Tallies) gain(view graphstore.View, v Vertex) float64 {
	if t.keep.HalfLife == 0 {
		return 1
	}
	return gain(t.decay.landmark, view.LabelTime(v), uint64(t.keep.HalfLife))
}

// gain returns 2^((at - landmark)/halfLife), at most one, and 0 for a label that is too old. It is
// a product of constants by the bits of the exponent: the same on every processor.
func gain(landmark uint64, at event.Time, halfLife uint64) float64 {
	young := uint64(max(at, 0))
	if young >= landmark {
		return 1 // of a label to come: the landmark is about to move
	}
	whole, rest := (landmark-young)/halfLife, (landmark-young)%halfLife
	if whole >= decayHalfLives {
		return 0
	}
	fraction, _ := bits.Div64(rest, 0, halfLife) // rest/halfLife in units of 2^-64
	g := 1.0
	for i, root := range roots {
		if fraction>>(63-i)&1 == 1 {
			g = float64(g * root)
		}
	}
	return math.Ldexp(g, -int(whole))
}

// roots are 2^-(1/2), 2^-(1/4), ...: square roots are rounded alike everywhere.
var roots = func() (roots [40]float64) {
	x := 0.5
	for i := range roots {
		x = math.Sqrt(x)
		roots[i] = x
	}
	return roots
}()

// moveLandmark moves the landmark to where the rows want it and reports whether it moved.
func (t *Tallies) moveLandmark(view graphstore.View) bool {
	if t.keep.HalfLife == 0 {
		return false
	}
	want, youngest, epoch := uint64(0), event.Time(0), epochHalfLives*uint64(t.keep.HalfLife)
	for _, v := range t.rows {
		youngest = max(youngest, view.LabelTime(v))
	}
	if len(t.rows) > 0 {
		want = (uint64(youngest)/epoch + 1) * epoch
	}
	moved := want != t.decay.landmark
	t.decay.landmark = want
	return moved
}

// scale returns the factor by which weights sum to the effective number of labels, (sum g)²/(sum
// g²): labels of one age count one each, for any landmark.
func (t *Tallies) scale() float64 {
	if square := total(t.counts()[whole].A2); square > 0 {
		return t.LabelMass() / square
	}
	return 0
}

// scaleToEffective scales the sums over the labels, and those of the kernel, to the effective
// number of labels.
func (t *Tallies) scaleToEffective(s *stats.Statistics) {
	x := t.scale()
	s.ClassG2 = slices.Clone(t.counts()[whole].A2)
	multiply(x, s.ClassN, s.ClassA1)
	multiply(x*x, s.ClassA2, s.ClassG2, s.ClassG2A)
	for _, cells := range cellsOf(s) {
		if c := *cells; c != nil {
			multiply(x, c.N, c.A1)
			multiply(x*x, c.A2, c.G2, c.G2A)
		}
	}
}

// floats returns the sums, rounded.
func floats(sums []Sum) []float64 {
	list := make([]float64, len(sums))
	for i, sum := range sums {
		list[i] = sum.Float()
	}
	return list
}

// multiply multiplies all numbers of some lists.
func multiply(by float64, lists ...[]float64) {
	for _, list := range lists {
		for i := range list {
			list[i] *= by
		}
	}
}

// Halvings returns the number of powers of two by which the landmark moved in this step: all
// weights of labels were divided by that power. It is negative if the youngest labels left.
func (t *Tallies) Halvings() int64 {
	halfLife := max(int64(t.keep.HalfLife), 1)
	return int64(t.decay.landmark)/halfLife - int64(t.decay.before)/halfLife
}

// LabelMass returns the number of calibration labels, each weighted by its age.
func (t *Tallies) LabelMass() float64 { return total(t.counts()[whole].A1) }
