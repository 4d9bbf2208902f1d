package posterior

import "gqlstream/graphstore"

// agreementVertices is the number of open vertices, or up to twice as many, that measure the
// agreement of neighbours if there are more.
const agreementVertices = 512

// agreement returns the covariance of the classes of vertices one step apart, given all
// observations, as a part of their variances; and that of vertices two steps apart, with the weight
// of a label of the one in c2 of the other. Residuals of labels do not show it, because near labels
// are inputs of each other's posterior. The posterior itself shows it: with another label of class
// l in c1, or in c2, the posterior of v is pi^l, so that
//
//	tr Cov = sum_l pi_l (pi_l^l - sum_m pi_m pi_l^m).
//
// agreement averages this over open vertices. A negative covariance counts as zero.
func (e *Epoch) agreement(view graphstore.View, r *Reader) []float64 {
	one, two, variance, weights, vertices := 0.0, 0.0, 0.0, 0.0, 0.0
	pi := make([]float64, len(e.B))
	seen, every := 0, int(e.Vertices)/agreementVertices+1
	for v := range Vertex(view.Vertices()) {
		if !isOpen(view, v) {
			continue
		}
		if seen++; seen%every > 0 || !r.Posterior(pi, v) {
			continue
		}
		weight := twoSteps(view, v)
		one += r.covariance(pi, &r.one, 1)
		two += r.covariance(pi, &r.two, weight)
		for _, p := range pi {
			variance += float64(p * (1 - p))
		}
		weights, vertices = weights+weight, vertices+1
	}
	return []float64{max(0, ratio(one, variance)), max(0, ratio(two*vertices, variance*weights))}
}

// twoSteps returns the mean weight in c2(v) of the label of a vertex two steps away.
func twoSteps(view graphstore.View, v Vertex) float64 {
	ends := 0
	for _, u := range view.Neighbors(v) {
		ends += len(view.Neighbors(u))
	}
	return ratio(float64(len(view.Neighbors(v))), float64(ends))
}

// covariance returns tr Cov of the class of the vertex that was read last and the class of another
// vertex, given the weight of the latter's label in counts.
func (in *Reader) covariance(pi []float64, c *counts, weight float64) (sum float64) {
	k, all := len(pi), c.all
	with, mean := make([]float64, k), make([]float64, k)
	for l, p := range pi {
		before := c.each[l]
		c.each[l], c.all = before+weight, all+weight
		in.score(in.scores)
		c.each[l], c.all = before, all
		softmax(with, in.scores)
		sum += float64(p * with[l])
		for i, x := range with {
			mean[i] += float64(p * x)
		}
	}
	return sum - inner(pi, mean)
}
