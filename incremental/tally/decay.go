package tally

import (
	"math"
	"math/bits"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// With a half-life h a calibration label that was last asserted at t counts g = 2^((t -
// landmark)/h): forward decay (Cormode, Shkapenyuk, Srivastava and Xu, ICDE 2009). The factor is
// fixed for a row, so time alone changes no sum, and a common factor of all labels does not show in
// an estimate. The landmark is the end of the epoch of the youngest label, an exact function of the
// graph; when it moves, everything that rows are in is counted anew.

const (
	epochHalfLives = 4  // that an epoch lasts: g of the youngest label is above 2^-4
	decayHalfLives = 40 // behind the landmark, after which a label counts nothing

	// HalfLifeMax keeps times of landmarks within 64 bits.
	HalfLifeMax = 20 * 365 * 24 * time.Hour
)

// Why not weigh labels by their age at each emission, as one would on paper? Then all rows
// of all communities would be counted anew at each emission, however little had happened.
// Why not drop the old ones at a bound? A label that leaves at once moves an estimate by
// more than its weight is worth, and the record would speak of a change that nobody made.

// decay says from when the ages of labels are measured.
type decay struct {
	landmark uint64 // end of the epoch of the youngest row, or 0
	before   uint64 // the landmark when the step began
}

// gains are the weight g of a label and its square; {1, 1} without a half-life.
type gains struct{ one, square float64 }

// gains returns the weights of a label of the given time.
func (t *Tallies) gains(at event.Time) gains {
	if t.decay == nil {
		return gains{1, 1}
	}
	g := gain(t.decay.landmark, at, uint64(t.keep.HalfLife))
	return gains{g, float64(g * g)}
}

// gain returns 2^((at - landmark)/halfLife), at most one, and 0 for what is too old. It
// is a product of constants by the bits of the exponent: the same on every processor.
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
	if t.decay == nil {
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

// recountRows counts the rows' shared sums from nothing.
func (t *Tallies) recountRows(view graphstore.View, sums *neighborhood.Sums) {
	for kind := range t.n {
		clear(t.n[kind])
		clear(t.n2[kind])
	}
	for _, v := range t.rows {
		s := stateOf(view, sums, v)
		t.countRow(&s, t.gains(s.time), 1)
	}
}

// scale returns the factor by which weights sum to the effective number of labels,
// (sum g)²/(sum g²): labels of one age count one each, whatever the landmark.
func (t *Tallies) scale() float64 {
	if square := total(floats(t.n2[whole])); square > 0 {
		return t.LabelMass() / square
	}
	return 0
}

// age brings the sums over the labels, and those of the kernel, to the weights of the labels.
func (t *Tallies) age(s *quant.Statistics) {
	x := t.scale()
	s.ClassG2 = floats(t.n2[whole])
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

// Halvings returns by how many powers of two the landmark moved in this step: what the
// weight of every label was divided by. It is negative where the youngest labels went.
func (t *Tallies) Halvings() int64 {
	if t.decay == nil {
		return 0
	}
	halfLife := int64(t.keep.HalfLife)
	return int64(t.decay.landmark)/halfLife - int64(t.decay.before)/halfLife
}

// LabelMass returns the number of calibration labels, each weighted by its age.
func (t *Tallies) LabelMass() (sum float64) {
	for i := range t.n[whole] {
		sum += t.n[whole][i].Float()
	}
	return sum
}
