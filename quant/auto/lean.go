package auto

import (
	"slices"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// shareOfLabels returns the shares of calibration labels, which are weighed where they are not
// typical of the graph.
func shareOfLabels(p *stats.Posterior, labels []float64) []float64 {
	shares := slices.Clone(labels)
	if p.LabelWeights != nil && p.Atypical > stats.AtypicalAbove { // else the labels' own are surer
		floats.Mul(shares, p.LabelWeights)
	}
	solve.ScaleTo(shares, 1/solve.Sum(shares), shares)
	return shares
}

// drawnNoise returns the variance that the way in which labels were drawn leaves in the share of a
// class among them: the error of its correction or, where it is not corrected, the square of what
// the correction would be.
func drawnNoise(p *stats.Posterior, class int) float64 {
	if len(p.PriorNoise) == 0 {
		return 0
	}
	k, noise := len(p.Prior), 0.0
	if noise = p.PriorNoise[class*k+class]; p.Atypical <= stats.AtypicalAbove {
		noise += solve.Square(p.Prior[class] * (1 - 1/p.LabelWeights[class]))
	}
	return noise
}

// leanOnLabels mixes the shares of the calibration labels into ans where the community is more than
// half of the vertices that the labels were drawn from. Of a share c of them, the labels' own
// shares miss what makes the rest different, which has the weight 1 - c; they rest on no model.
// They say how things were when the labels were given, and count as far as the labels are fresh.
// Labels and members are draws of the same, so that both are noise of the distance between their
// shares, and move with the coefficients as most vertices do, so that the influence stays.
func (a *estimate) leanOnLabels(s *stats.Statistics) {
	p, ans := s.Posterior, a.ans
	if p.Selected != stats.ByEdges || !(2*p.Distinct > p.Vertices) {
		return
	}
	odds := (p.Vertices - p.Distinct) / p.Distinct
	lean := p.LabelGate * (1 - p.Stale) * (1 - odds*odds)
	a.lean = lean
	labels, shares := solve.Sum(s.ClassN), shareOfLabels(p, s.ClassN)
	for i, x := range shares {
		sampling := x*(1-x)*(1/labels+1/p.Distinct) + drawnNoise(p, i)
		apart := solve.Square(ans.Share[i] - x)
		ans.V[i] = (1-lean)*(1-lean)*ans.V[i] + lean*lean*sampling + lean*(1-lean)*apart
		ans.Share[i] += lean * (x - ans.Share[i])
	}
}
