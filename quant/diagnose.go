package quant

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// diagnose appends the flags that the statistics and the answer call for.
func (w *Solver) diagnose(e *Estimate, s *Statistics, r recipe, o Options) {
	at := s.reach()
	if s.Audit != nil && s.Audit.Labels >= AuditsMin && !s.auditable() {
		e.Flags = append(e.Flags, FlagAuditReach)
	}
	e.Flags = w.ans.contradicted(e.Flags)
	if r.family != familyCount && !w.ans.audited {
		nEff := w.ans.NEff
		e.Flags = flagged(
			e.Flags,
			FlagThin,
			s.K,
			func(i int) bool { return nEff[i] > 0 && nEff[i] < thinBelow },
		)
		e.Flags = flagged(e.Flags, FlagUnsupported, s.K, func(i int) bool { return nEff[i] == 0 })
	}
	if r.weighted && at.mean == 0 && !w.ans.audited {
		e.Flags = append(e.Flags, FlagUnreachable)
	}
	if e.Coverage < coverageLow {
		e.Flags = append(e.Flags, FlagLowCoverage)
	}
	switch r.family {
	case familySolve, familyML:
		if w.ans.unseen > unseenHigh {
			e.Flags = append(e.Flags, FlagUnseen)
		}
		e.Flags = w.conditioning(e.Flags, s, r, o, at)
	case familyCount:
		switch {
		case w.ans.nothing && sum(s.ClassN) == 0:
			// they could show that the predictions say something
			e.Flags = append(e.Flags, FlagNoLabels)
		case w.ans.nothing:
			e.Flags = flagged(
				e.Flags,
				FlagUnsupported,
				s.K,
				func(i int) bool { return s.ClassN[i] == 0 },
			)
			e.Flags = w.conditioning(e.Flags, s, r, o, at)
		}
	}
	if w.ans.clustered {
		e.Flags = append(e.Flags, FlagClustered)
	}
	if w.ans.auto != nil { // where audit labels alone answer, auto has none
		e.Flags = w.ambiguous(e.Flags, s.K)
		if s.Posterior.Atypical > atypicalAbove {
			e.Flags = append(e.Flags, FlagAtypical)
		}
	} else if r.family != familyAuto && r.weighted && s.Soft != nil && at.mean > 0 {
		e.Flags = w.disagreement(e.Flags, s, at)
	}
}

// conditioning flags a confusion matrix that hardly tells two classes apart.
func (w *Solver) conditioning(
	flags []string,
	s *Statistics,
	r recipe,
	o Options,
	at reach,
) []string {
	weights := constantWeights
	if r.weighted {
		weights = at.weigh(o.Preset, w.ans.lambda, s.KernelSum)
	}
	m := s.confusion(r, weights, 0)
	if m.k < 2 {
		return flags
	}
	sigma, i, j := m.weakest()
	if sigma >= blurredBelow {
		return flags
	}
	return append(flags, fmt.Sprintf("%s:%d~%d", FlagIllConditioned, i, j))
}

// weakest returns the smallest singular value of C on vectors that sum to zero and the two classes,
// i < j, that its direction trades against each other: the largest eigenvalue of the inverse of C'C
// there.
func (m *confusion) weakest() (sigma float64, i, j int) {
	k := m.k
	g, ridge := m.ridged(nil)
	inverse, x := invertOnSimplex(g, k)
	values := eigenvalues(inverse, k)
	for a := range x {
		x[a] = inverse[a*k+k-1] // of the largest eigenvalue, which is the last
	}
	low, high := floats.MinIdx(x), floats.MaxIdx(x)
	return math.Sqrt(max(1/values[k-1]-ridge, 0)), m.class[min(low, high)], m.class[max(low, high)]
}

// disagreement compares sis, which trusts that the confusion given the class is
// stable, with diff, which trusts that the label given the vertex is, under one
// weighting: where they differ beyond their errors at least one is wrong.
func (w *Solver) disagreement(flags []string, s *Statistics, at reach) []string {
	lambda := min(LambdaDefault, at.lambdaMax(mixtureFloor))
	weights := at.weigh(Density, lambda, s.KernelSum)
	diff := w.difference(s, weights)
	sis := w.adjusted(s, recipe{family: familySolve, weighted: true}, weights, nil)
	z := bonferroni(shiftConfidence, s.K)
	return flagged(flags, FlagShift, s.K, func(i int) bool {
		variance := diff.v[i] + sis.v[i]
		return sis.NEff[i] > 0 && math.Abs(diff.free[i]-sis.free[i]) > z*math.Sqrt(max(variance, 0))
	})
}

// ambiguous flags the classes in which both readings of auto, selected by class and
// selected by place, differ beyond their errors.
func (w *Solver) ambiguous(flags []string, k int) []string {
	a := w.ans.auto
	away := a.reading.away(a.residual)
	z := bonferroni(shiftConfidence, k)
	return flagged(flags, FlagShift, k, func(i int) bool {
		return w.ans.NEff[i] > 0 && math.Abs(away[i]) > z*math.Sqrt(a.apart[i])
	})
}
