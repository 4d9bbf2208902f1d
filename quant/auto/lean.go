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

// drawnNoise returns the variance in the labels' share of a class because labels were not drawn at
// random: the error of the correction and, where shareOfLabels does not correct, the square of the
// correction too.
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
	lean := p.LabelGate * (1 - p.Stale) * (1 - odds*odds)
	a.labelWeight = lean
	labels, shares := solve.Sum(s.ClassN), shareOfLabels(p, s.ClassN)
	for i, x := range shares {
		sampling := x*(1-x)*(1/labels+1/p.Distinct) + drawnNoise(p, i)
		apart := solve.Square(ans.Share[i] - x)
		ans.V[i] = (1-lean)*(1-lean)*ans.V[i] + lean*lean*sampling + lean*(1-lean)*apart
		ans.Share[i] += lean * (x - ans.Share[i])
	}
}
