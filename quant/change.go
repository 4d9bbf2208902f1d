package quant

import (
	"fmt"
	"math"
	"slices"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// Snapshot holds the parts of an estimate that a later one of the same community needs: to say how
// it changed and with which error, and to start from. It holds no reference to the Solver or the
// Statistics, so it can be kept between emissions and written to a checkpoint.
type Snapshot struct {
	Solved   bool      // false: the estimate was a stand-in, nothing cancels
	Open     float64   // share of the members that was estimated, not counted
	Profiled float64   // multiplicity of the unlabelled members with a prediction
	Share    []float64 // K: prevalence among the unlabelled
	SE       []float64 // K: of the prevalence
	NEff     []float64 // K
	Lag      []float64 // K: the part of SE that stands for being behind; none: nothing moved
	Labels   []float64 // K: variance of all shares together from the labels of each class
	Member   []float64 // K: variance of each share from one member

	Audits     uint64    // audit labels that it rests on
	Prevalence []float64 // K: the shares of all members
	Coverage   float64   // of the unlabelled members by predictions

	Memory stats.Memory // of auto

	Profile []float64 // of other methods: the mean profile of the members
}

// Memorised returns the memory of auto in a snapshot; nil if there is no snapshot.
func (s *Snapshot) Memorised() *stats.Memory {
	if s == nil {
		return nil
	}
	return &s.Memory
}

// Snapshot returns the snapshot of the Estimate that was made just before. Nobody writes to the
// slices that it refers to.
func (w *Solver) Snapshot() *Snapshot { return w.last }

// snapshot returns the snapshot of the estimate e, made from the answer in w.ans.
func (w *Solver) snapshot(e *Estimate, s *stats.Statistics, solved bool) *Snapshot {
	ans := w.ans
	next := &Snapshot{
		Solved: solved, Open: s.Open(), Profiled: s.Profiled, Coverage: e.Coverage,
		Share: ans.Share, NEff: ans.NEff, Member: ans.Member,
		SE: slices.Clone(e.SE), Prevalence: slices.Clone(e.Prevalence),
	}
	if solved {
		for of := range slices.Chunk(ans.Parts, s.K) {
			next.Labels = append(next.Labels, solve.Sum(of))
		}
	}
	if ans.Audited {
		next.Audits = e.AuditLabels
	}
	if ans.Memory != nil {
		next.Memory = *ans.Memory
	}
	return next
}

// SEChange returns the standard errors of the change of the prevalence from prev to the Estimate
// that was made just before. Errors that both estimates share cancel: with o the share of members
// estimated, n their number and q the share,
//
//	V = sum_i (o q_i - o' q_i')^2 H S_ci H'      labels that both have
//	  + sum_i |1 - n_eff,i/n_eff,i'| o^2 L_i      labels that one has
//	  + v (Stayed (o/n - o'/n')^2 + Joined (o/n)^2 + Left (o'/n')^2)
//
// where L_i is the variance from the labels of class i (q_i^2 H S_ci H' for the adjusted counts)
// and v that of one member. The second line takes the smaller set of labels as part of the larger.
// The result is at most se + se', as for errors that go against each other; if nothing cancels,
// sqrt(se^2 + se'^2). It panics if the numbers of classes differ.
func (w *Solver) SEChange(prev *Snapshot, t stats.Turnover) []float64 {
	cur := w.last
	k := len(cur.SE)
	if len(prev.SE) != k {
		panic(fmt.Sprintf("quant: change from %d to %d classes", len(prev.SE), k))
	}
	change := make([]float64, k)
	if t.Reset || !prev.Solved || !cur.Solved || prev.Memory.Posterior != cur.Memory.Posterior ||
		prev.Audits != cur.Audits {
		for i := range change {
			change[i] = math.Hypot(prev.SE[i], cur.SE[i])
		}
		return change
	}
	for i := range k {
		moved := cur.Open*cur.Share[i] - prev.Open*prev.Share[i]
		solve.Axpy(change, moved*moved, w.ans.Spreads[i*k:(i+1)*k])
		fresh := 1.0 // share of the labels, one set being part of the other
		if n := prev.NEff[i]; n > 0 {
			fresh = math.Abs(1 - cur.NEff[i]/n)
		}
		solve.Axpy(change, cur.Open*cur.Open*fresh, w.ans.Parts[i*k:(i+1)*k])
	}
	now, before := perMember(cur), perMember(prev)
	members := t.Stayed*solve.Square(now-before) + t.Joined*now*now + t.Left*before*before
	for i := range change {
		v := change[i] + members*max(cur.Member[i], prev.Member[i])
		change[i] = min(math.Sqrt(max(v, 0)), prev.SE[i]+cur.SE[i])
	}
	return change
}

// perMember returns the contribution of one member to the prevalence, o/n.
func perMember(s *Snapshot) float64 {
	if s.Profiled <= 0 {
		return 0
	}
	return s.Open / s.Profiled
}

const (
	// labelsMoved is the share by which an effective number of labels must differ from that
	// of a record for the record to be renewed: its standard errors are off by half as much.
	labelsMoved = 0.1
	// thinMoved is the same of one that passes thinBelow: labels that come and go there change
	// nothing by themselves.
	thinMoved = 0.03
)

// Distance returns how far the Estimate that was made just before differs from last: the largest
// change of a share in standard errors of last, or of a standard error as a part of itself. It is
// infinite where the record says something else: it has an answer where last had none, other
// coefficients, other flags that follow from a number (coverage, thin), or effective labels that
// differ by labelsMoved.
func (w *Solver) Distance(last *Snapshot) (most float64) {
	now := w.last
	if now.Solved != last.Solved || now.Audits != last.Audits ||
		now.Memory.Posterior != last.Memory.Posterior ||
		(now.Coverage < coverageLow) != (last.Coverage < coverageLow) ||
		labelsChanged(now.NEff, last.NEff) {
		return math.Inf(1)
	}
	for i, q := range now.Prevalence {
		se, before := now.SE[i], last.SE[i]
		if change := math.Abs(q - last.Prevalence[i]); change > 0 {
			most = max(most, change/before)
		}
		if se != before {
			most = max(most, se/before-1, before/se-1)
		}
	}
	return most
}

// labelsChanged reports whether the effective labels of a class are other than they were.
func labelsChanged(now, then []float64) bool {
	for i, n := range now {
		moved := math.Abs(n - then[i])
		passed := (n < thinBelow) != (then[i] < thinBelow)
		if moved > labelsMoved*then[i] || moved > thinMoved*then[i] && passed {
			return true
		}
	}
	return false
}
