package auto

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

const (
	// gammaMax bounds gamma where edges decide: even members that look like a sample
	// within their classes may have been selected in part by something else.
	gammaMax = 0.95
	// byClassOdds is how much more likely a selection by class is than one by the
	// prediction, before the members are looked at.
	byClassOdds = 30
	// evidenceWeight is the weight of a member in the judgement of how members were selected:
	// members that are neighbours have much of their posteriors in common.
	evidenceWeight = 0.5
	// explainedLeast is the least part of how members differ from the whole graph that a selection
	// by class explains.
	explainedLeast = 0.5
	// settledRecords is the number of records that evidence is averaged over, and evidenceMost the
	// most of it that one counts.
	settledRecords, evidenceMost = 50, 8
)

// evidenceOf returns the evidence that members were selected by their classes, and not by their
// predictions f: the logarithm of the ratio of both likelihoods. Both ways change the density of
// the vertices that are members, by
//
//	sum_i q_i pi_i/pi0_i, over the mean of that in the whole graph,  and
//	t_c/T_c  for c the class that f is for,
//
// with q = q(1), u holding its factors, and t and T the shares of these classes among the members
// and in the whole graph: as many unknowns either way. If classes explain less than explainedLeast
// of the divergence of the members' cells from those of the whole graph, members were selected by
// something else that the posterior knows, as by how sure the classifier is. If one attribute that
// it reads explains more than classes do, they were selected by that. A member counts
// evidenceWeight, and one that counts several times no more than once. A declared selection is not
// judged.
func evidenceOf(p *stats.Posterior, u *histogram, squares float64) float64 {
	members := solve.Sum(p.Predicted)
	if p.Selected != stats.ByEdges || !(members > 0) || !(p.Vertices > 0) {
		return math.Inf(1)
	}
	count := evidenceWeight * u.All * u.All / squares
	byClass := -math.Log(floats.Dot(u.Factor, p.Mass) / p.Vertices)
	for l, m := range u.M {
		byClass -= m / u.All * math.Log(u.Inverse[l])
	}
	byPrediction := 0.0
	for c, n := range p.Predicted {
		if share := n / members; share > 0 {
			byPrediction += share * math.Log(share*p.Vertices/max(p.Tops[c], 1))
		}
	}
	other := max(byPrediction, explainedLeast*divergence(p, u, count))
	if p.Apart != nil {
		other = max(other, p.Apart(count))
	}
	return count * (byClass - other)
}

// divergence returns that of Kullback and Leibler from the cells of the whole graph to those of the
// members, less its mean if this number of members were drawn at random.
func divergence(p *stats.Posterior, u *histogram, members float64) float64 {
	divergence, cells := 0.0, -1.0
	for _, n := range p.Sizes {
		if n > 0 {
			cells++
		}
	}
	for l, z := range u.cells {
		share := u.M[l] / u.All
		divergence += share * math.Log(share*p.Vertices/max(p.Sizes[z], 1))
	}
	return divergence - cells/(2*members)
}

// settled averages the evidence for a selection over the records of a community, so that gamma does
// not flip between two values while labels come: each counts alike at first, and later ones
// settledRecords times as much as the average of those before. Evidence beyond evidenceMost decides
// by itself, and counts as that. last is the record before; nil: there is none.
func settled(evidence float64, last *stats.Memory) (average, records float64) {
	if math.IsInf(evidence, 0) {
		return evidence, 0
	}
	evidence = max(-evidenceMost, min(evidenceMost, evidence))
	if last == nil || !(last.Seen > 0) {
		return evidence, 1
	}
	records = min(last.Seen+1, settledRecords)
	return last.Evidence + (evidence-last.Evidence)/records, records
}

// byClassOf returns the probability of a selection by class with this evidence, at most gammaMax.
func byClassOf(evidence float64) float64 {
	return min(gammaMax, 1/(1+math.Exp(-evidence)/byClassOdds))
}

// gammaOf returns the part of selection by class: p.Gamma if it is set, gammaMax if a selection by
// class is declared, 0 if one by place or attribute is. Otherwise it is the smallest of most,
// allowed and the gate of the labels.
func gammaOf(p *stats.Posterior, allowed, most float64) float64 {
	if p.Gamma != nil {
		return *p.Gamma
	}
	switch p.Selected {
	case stats.ByClass:
		return gammaMax
	case stats.ByPlace, stats.ByAttribute:
		return 0
	}
	return min(most, allowed, p.LabelGate)
}

// allowedBy returns how far edges let a selection by class with these shares go, from those inside
// and those expected if as many members were drawn at random within their classes: 1 if there are
// no more edges than expected and two standard deviations.
func allowedBy(p *stats.Posterior, likely []float64) float64 {
	if p.Selected != stats.ByEdges || !(p.Inside > 0) {
		return 1
	}
	expected := p.Expected(p.Distinct, likely)
	return min(1, (expected+2*math.Sqrt(expected)+2)/p.Inside)
}
