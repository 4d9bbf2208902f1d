package auto

import (
	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// mixLabels mixes the shares of the calibration labels into ans where the community is more than
// half of the vertices that the labels were drawn from. If it is a share c of them, the error of
// the labels' own shares is the difference of the rest of the vertices, times 1 - c. These shares
// rest on no model. They are of the time when the labels were given, so they count as far as the
// labels are fresh. Labels and members are two draws of the same vertices: the distance between
// their shares has the noise of both. Both move with the coefficients as most vertices do, so the
// influence stays.
func (a *estimate) mixLabels(s *stats.Statistics) {
	p, ans := s.Posterior, a.ans
	if p.Selected != stats.ByEdges || !(2*p.Distinct > p.Vertices) {
		return
	}
	odds := (p.Vertices - p.Distinct) / p.Distinct
	weight := p.LabelGate * (1 - p.Stale) * (1 - odds*odds)
	a.labelWeight = weight
	labels, shares := solve.Sum(s.ClassN), p.WeighShares(s.ClassN)
	for i, x := range shares {
		sampling := x*(1-x)*(1/labels+1/p.Distinct) + p.DrawnNoise(i)
		apart := solve.Square(ans.Share[i] - x)
		ans.V[i] = (1-weight)*(1-weight)*ans.V[i] + weight*weight*sampling + weight*(1-weight)*apart
		ans.Share[i] += weight * (x - ans.Share[i])
	}
}
