package quant

import (
	"fmt"
	"slices"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// diagnose appends the flags that the statistics and the answer call for.
func (w *Solver) diagnose(e *Estimate, s *stats.Statistics, row *method) {
	if s.Audit != nil && s.Audit.Labels >= stats.AuditsMin && !s.Auditable() {
		e.Flags = append(e.Flags, FlagAuditReach)
	}
	ans := w.ans
	z := solve.Bonferroni(stats.AuditConfidence, s.K)
	e.Flags = flagged(e.Flags, FlagAssumption, len(ans.AuditErrors), func(i int) bool {
		return ans.AuditErrors[i] > z
	})
	if !ans.Counts && !ans.Audited {
		e.Flags = flagged(e.Flags, FlagThin, s.K, func(i int) bool {
			return ans.NEff[i] > 0 && ans.NEff[i] < thinBelow
		})
		e.Flags = flagged(e.Flags, FlagUnsupported, s.K, func(i int) bool {
			return ans.NEff[i] == 0
		})
	}
	if row.weighted && s.Reach().Mean == 0 && !ans.Audited {
		e.Flags = append(e.Flags, FlagUnreachable)
	}
	if e.Coverage < coverageLow {
		e.Flags = append(e.Flags, FlagLowCoverage)
	}
	switch labels := solve.Sum(s.ClassN) > 0; {
	case ans.Nothing && !labels: // labels could show that the predictions say something
		e.Flags = append(e.Flags, FlagNoLabels)
	case ans.Nothing:
		e.Flags = flagged(e.Flags, FlagUnsupported, s.K, func(i int) bool {
			return s.ClassN[i] == 0
		})
	}
	if ans.Diagnose != nil {
		e.Flags = doubts(e.Flags, s.K, ans.Diagnose())
	}
}

// doubts appends the flags for the doubts of a method about its answer.
func doubts(flags []string, k int, d stats.Diagnosis) []string {
	if d.Unseen {
		flags = append(flags, FlagUnseen)
	}
	if d.Confused != nil {
		confused := fmt.Sprintf("%s:%d~%d", FlagIllConditioned, d.Confused[0], d.Confused[1])
		flags = append(flags, confused)
	}
	if d.Clustered {
		flags = append(flags, FlagClustered)
	}
	flags = flagged(flags, FlagShift, k, func(i int) bool { return slices.Contains(d.Disputed, i) })
	if d.Atypical {
		flags = append(flags, FlagAtypical)
	}
	return flags
}
