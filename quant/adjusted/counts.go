package adjusted

import (
	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// LabelShare is mlpe: the shares of the calibration labels.
type LabelShare struct{}

// Answer returns the shares of the labels, weighed by class where the labels are not typical of the
// graph. Their variances are those of a mean and of that correction, and say nothing of bias.
func (LabelShare) Answer(s *stats.Statistics, _ stats.Scaling) *stats.Answer {
	if s.Posterior.LabelsAtypical() {
		return weighedLabelShare(s)
	}
	ans, p, n := stats.Fallback(s).WithVariances(), s.LabelShares(), solve.Sum(s.ClassN)
	copy(ans.Free, p)
	ans.Exact = true
	for a := range s.K {
		ans.V[a] = p[a] * (1 - p[a]) / n
		for b := range s.K { // of labels of class a in share b
			ans.Parts[a*s.K+b] = s.ClassSquares()[a] / (n * n) *
				solve.Square(solve.Delta(a, b)-p[b])
		}
	}
	return ans
}

// weighedLabelShare is LabelShare for labels that are not typical of the graph.
func weighedLabelShare(s *stats.Statistics) *stats.Answer {
	ans, weights := stats.Fallback(s).WithVariances(), s.Posterior.LabelWeights
	p, n := s.Posterior.WeighShares(s.ClassN), floats.Dot(s.ClassN, weights)
	copy(ans.Share, p)
	copy(ans.Free, p)
	ans.Exact = true
	for b := range s.K {
		ans.V[b] = s.Posterior.DrawnNoise(b)
		for a := range s.K { // of labels of class a in share b
			ans.Parts[a*s.K+b] = s.ClassSquares()[a] * solve.Square(weights[a]/n) *
				solve.Square(solve.Delta(a, b)-p[b])
			ans.V[b] += ans.Parts[a*s.K+b]
		}
	}
	ans.Diagnose = func() stats.Diagnosis { return stats.Diagnosis{Atypical: true} }
	return ans
}

// Count is cc and pcc: the mean of the predictions.
type Count struct{ Hard bool }

// Answer returns the mean of the predictions. Its variances are those of a plain mean and say
// nothing of bias.
func (c Count) Answer(s *stats.Statistics, by stats.Scaling) *stats.Answer {
	kind, p := stats.Kind{Hard: c.Hard}, s.Cells(stats.Kind{Hard: c.Hard}).P
	ans, n := stats.Fallback(s).WithVariances(), s.Sample()
	ans.Counts, ans.Exact = true, c.Hard || s.OwnVariance != nil
	copy(ans.Share, p)
	copy(ans.Free, p)
	for a := range s.K {
		v := p[a] * (1 - p[a])
		if !c.Hard && s.OwnVariance != nil {
			v = s.OwnVariance[a]
		}
		ans.V[a] = v / n
		ans.Member[a] = max(v, 0)
	}
	ans.Nothing = countsNothing(s, kind, ans.V[:s.K])
	ans.Diagnose = func() (d stats.Diagnosis) {
		if ans.Nothing && solve.Sum(s.ClassN) > 0 {
			d.Confused = confused(s, kind, stats.ConstantWeights)
		}
		return d
	}
	return ans
}

// countsNothing reports whether a count of predictions is no information: the labels of all classes
// have the same mean prediction, or no two classes with labels show that they differ, and the
// members' predictions are all equal, which the variances say.
func countsNothing(s *stats.Statistics, of stats.Kind, variances []float64) bool {
	if m := weigh(s.Cells(of), s.K, stats.ConstantWeights, 0); m.K > 1 {
		for a := 1; a < m.K; a++ {
			if floats.Distance(m.Column(0), m.Column(a), 1) > sameProfile {
				return false
			}
		}
		return true
	}
	return s.K > 1 && floats.Max(variances) == 0
}

// sameProfile bounds the distance of mean predictions that are equal but for rounding.
const sameProfile = 1e-9
