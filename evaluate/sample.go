package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gqlstream/graphstore"
)

// The samples of vertices that keep their labels, by name.
const (
	uniformLabels = "uniform" // each as likely as any other
	bfsLabels     = "bfs"     // balls around a few vertices: whoever is near is asked
	rwLabels      = "rw"      // who a random walk meets: snowball sampling
	degreeLabels  = "degree"  // in proportion to the degree: whoever is seen is asked
)

// labelSamples lists them.
var labelSamples = []string{uniformLabels, bfsLabels, rwLabels, degreeLabels}

const (
	labelBalls = 5 // that the labels of bfsLabels fill
	labelSteps = 4 // of a walk of rwLabels at most, times the labels that are wanted
)

// sample returns n of the labelled vertices and the others, in the order in which
// the sample of that name draws them.
func (d *dataset) sample(name string, n int, r *rand.Rand) (drawn, others []graphstore.Vertex) {
	shuffled := slices.Clone(d.labelled)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	switch name {
	case bfsLabels:
		for i := range labelBalls {
			drawn = d.spread(drawn, shuffled, n*(i+1)/labelBalls, nil)
		}
	case rwLabels:
		drawn = d.spread(nil, shuffled, n, r)
	case degreeLabels:
		sortByDegree(d.view, shuffled, r)
	}
	taken := map[graphstore.Vertex]bool{}
	for _, v := range drawn {
		taken[v] = true
	}
	for _, v := range shuffled {
		switch {
		case taken[v]:
		case len(drawn) < n:
			drawn = append(drawn, v)
		default:
			others = append(others, v)
		}
	}
	return drawn, others
}

// spread adds labelled vertices to drawn until it has n: those of a ball around the
// first of order that is not drawn, breadth first, or, given a source of randomness,
// those that a walk from it meets. Where either comes to an end, the next begins.
func (d *dataset) spread(drawn, order []graphstore.Vertex, n int, r *rand.Rand) []graphstore.Vertex {
	open := map[graphstore.Vertex]bool{}
	for _, v := range d.labelled {
		open[v] = true
	}
	for _, v := range drawn {
		delete(open, v)
	}
	for _, root := range order {
		if !open[root] {
			continue
		}
		visited := map[graphstore.Vertex]bool{root: true}
		queue := []graphstore.Vertex{root}
		for steps := 0; len(queue) > 0 && len(drawn) < n; steps++ {
			v := queue[0]
			queue = queue[1:]
			if open[v] {
				delete(open, v)
				drawn = append(drawn, v)
			}
			neighbors := d.view.Neighbors(v)
			if r == nil {
				for _, u := range neighbors {
					if !visited[u] {
						visited[u] = true
						queue = append(queue, u)
					}
				}
			} else if len(neighbors) > 0 && steps < labelSteps*n {
				queue = append(queue, neighbors[r.IntN(len(neighbors))])
			}
		}
	}
	return drawn
}

// sortByDegree sorts by u^(1/degree), u uniform, the largest first: the first n are a sample
// without replacement in proportion to the degree (Efraimidis and Spirakis 2006).
func sortByDegree(view graphstore.View, vertices []graphstore.Vertex, r *rand.Rand) {
	key := map[graphstore.Vertex]float64{}
	for _, v := range vertices {
		key[v] = math.Log(1-r.Float64()) / (view.Degree(v) + 1)
	}
	slices.SortFunc(vertices, func(a, b graphstore.Vertex) int {
		return cmp.Or(cmp.Compare(key[b], key[a]), cmp.Compare(a, b))
	})
}

// checkSample reports a name that is none of labelSamples.
func checkSample(name string) error {
	if slices.Contains(labelSamples, name) {
		return nil
	}
	return fmt.Errorf("labels: there is no sample %q; there are %v", name, labelSamples)
}
