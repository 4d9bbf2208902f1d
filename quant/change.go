package quant

import (
	"fmt"
	"math"
)

// Snapshot is what the error of a change needs of an estimate. It holds no
// reference to the Solver or the Statistics, so it can be kept between emissions
// and written to a checkpoint.
type Snapshot struct {
	Solved   bool      // false: the estimate was a stand-in, nothing cancels
	Open     float64   // share of the members that was estimated, not counted
	Profiled float64   // multiplicity of the unlabelled members with a prediction
	Share    []float64 // K: prevalence among the unlabelled
	SE       []float64 // K: of the prevalence
	NEff     []float64 // K
	Class    []float64 // (i, k) at i*K+k: variance of share k from the labels of class i, were its share one
	Label    []float64 // (i, k) at i*K+k: variance of share k from the labels of class i
	Member   []float64 // K: variance of share k from one member
}

// Turnover says how the unlabelled members with a prediction of one community
// differ between two estimates, as sums of squared multiplicities: plain counts
// where all multiplicities are one. A member whose profile changed has left and
// joined by the square of the share of the profile that is another one now: whole, if
// they have nothing in common. Where it is not known, Joined and Left over all members
// are safe.
type Turnover struct {
	Stayed, Joined, Left float64
	Reset                bool // another model's predictions, or another method: nothing cancels
}

// Snapshot copies to dst what SEChange needs of the last Estimate, reusing dst.
func (w *Solver) Snapshot(dst *Snapshot) {
	dst.Solved, dst.Open, dst.Profiled = w.solved, w.open, w.profiled
	dst.Share = append(dst.Share[:0], w.ans.q...)
	dst.SE = append(dst.SE[:0], w.se...)
	dst.NEff = append(dst.NEff[:0], w.ans.nEff...)
	dst.Class = append(dst.Class[:0], w.ans.class...)
	dst.Label = append(dst.Label[:0], w.ans.label...)
	dst.Member = append(dst.Member[:0], w.ans.member...)
}

// SEChange writes to dst, of length K, the standard errors of the change of the
// prevalence from prev to cur, and returns dst. What both estimates share
// cancels: with o the share of members estimated, n their number and q the share,
//
//	V = sum_i (o q_i - o' q_i')^2 H S_ci H'      labels that both have
//	  + sum_i |1 - n_eff,i/n_eff,i'| o^2 L_i      labels that one has
//	  + v (Stayed (o/n - o'/n')^2 + Joined (o/n)^2 + Left (o'/n')^2)
//
// where L_i is the variance from the labels of class i (q_i^2 H S_ci H' for the
// adjusted counts) and v that of one member. The second line takes the smaller
// set of labels as part of the larger. The result is at most se + se', what errors
// that go against each other would give; if nothing cancels, sqrt(se^2 + se'^2).
// It panics if the numbers of classes differ.
func SEChange(dst []float64, prev, cur *Snapshot, t Turnover) []float64 {
	k := len(cur.SE)
	if len(prev.SE) != k || len(dst) != k {
		panic(fmt.Sprintf("quant: change from %d to %d classes into %d", len(prev.SE), k, len(dst)))
	}
	if t.Reset || !prev.Solved || !cur.Solved {
		for i := range dst {
			dst[i] = math.Hypot(prev.SE[i], cur.SE[i])
		}
		return dst
	}
	clear(dst)
	for i := range k {
		moved := cur.Open*cur.Share[i] - prev.Open*prev.Share[i]
		axpy(dst, moved*moved, cur.Class[i*k:(i+1)*k])
		fresh := cur.Open * cur.Open * relabelled(prev.NEff[i], cur.NEff[i])
		axpy(dst, fresh, cur.Label[i*k:(i+1)*k])
	}
	now, before := perMember(cur), perMember(prev)
	members := t.Stayed*square(now-before) + t.Joined*now*now + t.Left*before*before
	for i := range dst {
		v := dst[i] + members*max(cur.Member[i], prev.Member[i])
		dst[i] = min(math.Sqrt(max(v, 0)), prev.SE[i]+cur.SE[i])
	}
	return dst
}

// perMember is what one member adds to the prevalence, o/n.
func perMember(s *Snapshot) float64 {
	if s.Profiled <= 0 {
		return 0
	}
	return s.Open / s.Profiled
}

// relabelled is how much of the variance of a class's profile is new when its
// effective labels go from prev to cur, one set being part of the other.
func relabelled(prev, cur float64) float64 {
	if prev <= 0 {
		return 1
	}
	return math.Abs(1 - cur/prev)
}
