package adjusted

import (
	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// Diff is the difference estimator: the mean prediction and the mean residual of the labels.
type Diff struct{}

// Answer returns the difference estimate of one community.
func (Diff) Answer(s *stats.Statistics, by stats.Scaling) *stats.Answer {
	ans := difference(s, by.Weights(s))
	ans.Diagnose = func() (d stats.Diagnosis) {
		d.Disputed, d.Atypical = disputed(s), s.Posterior.LabelsAtypical()
		return d
	}
	return ans
}

// difference returns the difference estimator p + d, where d is the
// weighted mean over the calibration labels of (label - prediction): consistent
// when the label given the vertex is stable, and in need of no inverse.
//
//	V = sum (w/sum w)^2 (r - d)^2 + E_w[(r - d)^2]/n_U,  r = label - prediction,
//
// the second term because each member's own residual is unknown. Labels that are not typical of the
// graph have the weight of their class as a further factor in w, and V has the error of these
// weights.
func difference(s *stats.Statistics, weights stats.Weighting) *stats.Answer {
	ans := stats.NewAnswer(s.K)
	ans.Lambda = weights.Lambda
	m := confusionOf(s, stats.Kind{}, weights, 0)
	if m.K == 0 {
		copy(ans.Share, s.LabelShares())
		copy(ans.Free, ans.Share)
		return ans
	}
	byClass := s.Posterior.ClassWeights(s.K)
	for a, i := range m.class {
		m.mass[a] *= byClass[i]
	}
	total := solve.Sum(m.mass)
	d := make([]float64, s.K)
	for a, i := range m.class {
		d[i] += m.mass[a] / total
		solve.Axpy(d, -m.mass[a]/total, m.Column(a))
		ans.NEff[i] = m.nEff[a]
	}
	m.residuals(ans, s, d, total, byClass)
	ans.Exact = s.Rows != nil
	copy(ans.Free, s.Soft.P)
	solve.Axpy(ans.Free, 1, d)
	solve.ProjectSimplex(ans.Share, ans.Free)
	return ans
}

// residuals sets the variances: that of d, that of the members' own residuals, and that of the
// weights of the classes. The residual of a label of class i less d is -p - (d - e_i).
func (m *confusion) residuals(
	ans *stats.Answer, s *stats.Statistics, d []float64, total float64, byClass []float64,
) {
	k := s.K
	minus, centres := make([]float64, k*k), make([]float64, m.K*k)
	for i := range k {
		minus[i*k+i] = -1
	}
	for a, i := range m.class {
		copy(centres[a*k:], d)
		centres[a*k+i]--
	}
	one, squared := m.labelSpreads(minus, centres, false), m.labelSpreads(minus, centres, true)
	for a, i := range m.class {
		w := byClass[i]
		for j := range k {
			ans.Member[j] += max(w*one[a*k+j], 0) / total
			ans.Parts[i*k+j] = max(w*w*squared[a*k+j], 0) / (total * total)
			ans.V[j] += ans.Parts[i*k+j]
		}
	}
	solve.Axpy(ans.V, 1/s.Sample(), ans.Member)
	if s.Posterior.LabelsAtypical() {
		m.addDrawnNoise(ans.V, s.Posterior)
	}
}

// addDrawnNoise adds to v the variances of d because the shares of the classes that weigh its
// labels have the error of a correction. d is the mean of the mean residuals of the classes,
// e_i - c_i, each times its share.
func (m *confusion) addDrawnNoise(v []float64, p *stats.Posterior) {
	k := len(v)
	residual := make([]float64, m.K*k)
	for a, i := range m.class {
		row := residual[a*k : (a+1)*k]
		row[i] = 1
		solve.Axpy(row, -1, m.Column(a))
	}
	for a, i := range m.class {
		for b, j := range m.class {
			for class := range k {
				v[class] += p.PriorNoise[i*k+j] * residual[a*k+class] * residual[b*k+class]
			}
		}
	}
}
