package quant_test

import (
	"math"
	"math/rand/v2"

	"gqlstream/quant/stats"
)

// syntheticWorld is a homophilic random graph of two kinds of neighbourhoods with
// a classifier that is right about three times in four. The first of the two
// communities is everyone, the second the vertices of the first classes.
func syntheticWorld(classes, labels, members int, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 11))
	n := labels + members
	w := &world{classes: classes, edges: make(graph, n), labels: make([]int, n)}
	truth := make([]int, n)
	byClass := make([][]int, classes)
	for v := range n {
		truth[v] = int(float64(classes) * math.Pow(rng.Float64(), 1.2))
		byClass[truth[v]] = append(byClass[truth[v]], v)
		w.predictions = append(w.predictions, guess(rng, truth[v], classes))
		w.labels[v] = -1
	}
	for v := range n {
		for range 3 {
			pool := byClass[truth[v]]
			u := pool[rng.IntN(len(pool))]
			if rng.Float64() < 0.2 {
				u = rng.IntN(n)
			}
			if u != v {
				w.edges[v] = append(w.edges[v], int32(u))
				w.edges[u] = append(w.edges[u], int32(v))
			}
		}
	}
	for _, v := range rng.Perm(n)[:labels] {
		w.labels[v] = truth[v]
	}
	c := []community{{name: "everyone"}, {name: "some"}}
	for v := range n {
		if w.labels[v] < 0 {
			c[0].members, c[0].weights = append(c[0].members, v), append(c[0].weights, 1)
			if truth[v] < (classes+1)/2 || v%5 == 0 {
				c[1].members, c[1].weights = append(c[1].members, v), append(
					c[1].weights,
					float64(1+v%2),
				)
			}
		}
	}
	w.communities = c
	w.describe()
	return w
}

// guess is a prediction around the true class.
func guess(rng *rand.Rand, truth, classes int) []float64 {
	p := make([]float64, classes)
	total := 0.0
	for k := range p {
		p[k] = rng.ExpFloat64() / float64(classes)
		if k == truth && rng.Float64() < .75 {
			p[k] += 1
		}
		total += p[k]
	}
	for k := range p {
		p[k] /= total
	}
	return p
}

// syntheticStatistics gathers the statistics of the community of everyone.
func syntheticStatistics(classes, labels, members int, seed uint64) *stats.Statistics {
	w := syntheticWorld(classes, labels, members, seed)
	a := w.masses(personalised, w.communities[:1])
	return w.statistics(w.communities[0], a[0])
}
