package quant_test

import (
	"bufio"
	"compress/gzip"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gqlstream/quant/stats"
)

// graph is an undirected graph without self-loops, neighbours by vertex.
type graph [][]int32

// world is one case, computed from nothing: the statistics of a community are
// gathered by a plain loop over dense arrays, with no code of the pipeline.
type world struct {
	classes     int
	edges       graph
	predictions [][]float64 // by vertex
	labels      []int       // by vertex, -1 unknown
	communities []community
	profiles    []profile
}

// community is a multiset of vertices.
type community struct {
	name    string
	members []int
	weights []float64
}

// profile has the inputs of an estimator for a vertex.
type profile struct {
	neighbors     []float64
	own, majority int
}

// describe computes the profile of every vertex.
func (w *world) describe() {
	w.profiles = make([]profile, len(w.predictions))
	for v, p := range w.predictions {
		out := &w.profiles[v]
		out.own = argmax(p)
		out.neighbors = make([]float64, w.classes)
		votes := make([]float64, w.classes)
		for _, u := range w.edges[v] {
			for k, x := range w.predictions[u] {
				out.neighbors[k] += x / float64(len(w.edges[v]))
			}
			votes[argmax(w.predictions[u])]++
		}
		out.majority = argmax(votes)
		if len(w.edges[v]) == 0 {
			out.neighbors, out.majority = p, out.own
		}
	}
}

// argmax is the index of the largest entry, lowest on ties.
func argmax(x []float64) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}

// diffusion is a kernel computed by repeated multiplication.
type diffusion int

const (
	personalised diffusion = iota // with self-loops, to convergence
	truncated                     // with self-loops, 10 steps
	lazy                          // without self-loops, 10 steps
)

// masses returns the kernel mass of every vertex for each of the communities,
// sources unnormalised: x = sum over members of the walk's distribution.
func (w *world) masses(kind diffusion, communities []community) [][]float64 {
	const alpha, lanes = 0.1, 8
	out := make([][]float64, 0, len(communities))
	for group := range slices.Chunk(communities, lanes) {
		n := len(w.edges)
		source := make([][lanes]float64, n)
		for b, c := range group {
			for i, v := range c.members {
				source[v][b] += c.weights[i]
			}
		}
		x, z := slices.Clone(source), make([][lanes]float64, n)
		steps := 10
		if kind == personalised {
			steps = 130
		}
		for range steps {
			w.step(kind, alpha, x, z, source)
		}
		for b := range group {
			a := make([]float64, n)
			for v := range a {
				a[v] = x[v][b]
			}
			out = append(out, a)
		}
	}
	return out
}

// step multiplies x once, using z for x divided by the degrees.
func (w *world) step(kind diffusion, alpha float64, x, z, source [][8]float64) {
	for v := range x {
		d := float64(len(w.edges[v]))
		if kind != lazy {
			d++
		}
		all := x[v]
		for b := range all {
			all[b] /= max(d, 1)
		}
		z[v] = all
	}
	for v := range x {
		var s [8]float64
		if kind != lazy {
			s = z[v]
		}
		for _, u := range w.edges[v] {
			all := z[u]
			for b := range s {
				s[b] += all[b]
			}
		}
		rest := source[v]
		if kind == lazy {
			rest = x[v]
		}
		for b := range s {
			s[b] = (1-alpha)*s[b] + alpha*rest[b]
		}
		x[v] = s
	}
}

// statistics computes the inputs of a quantifier for a community with the kernel masses a. Labelled
// members are counted, not profiled.
func (w *world) statistics(c community, a []float64) *stats.Statistics {
	k := w.classes
	s := &stats.Statistics{
		K: k, Anchored: make([]float64, k),
		ClassN: make([]float64, k), ClassA1: make([]float64, k), ClassA2: make([]float64, k),
		Soft: newCells(k, k), SoftPair: newCells(k*k, k),
		Hard: newCells(k, k), HardPair: newCells(k*k, k),
		OwnVariance: make([]float64, k),
	}
	for i, v := range c.members {
		m := c.weights[i]
		s.Members += m
		if l := w.labels[v]; l >= 0 {
			s.Labelled += m
			s.Anchored[l] += m
			continue
		}
		s.KernelSum += m
		if w.predictions[v] != nil {
			s.Profiled += m
			s.Squares += m * m
			w.each(s, v, func(t *stats.Cells, z int, phi float64) { t.P[z] += m * phi })
		}
	}
	for _, t := range []*stats.Cells{s.Soft, s.SoftPair, s.Hard, s.HardPair} {
		for z := range t.P {
			t.P[z] /= max(s.Profiled, 1e-300)
		}
	}
	w.variance(s, c)
	for v, l := range w.labels {
		if l < 0 || w.predictions[v] == nil {
			continue
		}
		s.ClassN[l]++
		s.ClassA1[l] += a[v]
		s.ClassA2[l] += a[v] * a[v]
		w.each(s, v, func(t *stats.Cells, z int, phi float64) {
			t.N[z*k+l] += phi
			t.A1[z*k+l] += a[v] * phi
			t.A2[z*k+l] += a[v] * a[v] * phi
		})
	}
	w.rows(s, c, a)
	s.Posterior = w.posterior(c, a)
	return s
}

// newCells returns tallies of z cells and k classes.
func newCells(z, k int) *stats.Cells {
	return &stats.Cells{
		Z: z, P: make([]float64, z),
		N: make([]float64, z*k), A1: make([]float64, z*k), A2: make([]float64, z*k),
	}
}

// each visits the cells of a vertex under every kind of profile.
func (w *world) each(s *stats.Statistics, v int, visit func(t *stats.Cells, z int, phi float64)) {
	k, p := w.classes, &w.profiles[v]
	for j, x := range w.predictions[v] {
		visit(s.Soft, j, x)
		for l, y := range p.neighbors {
			visit(s.SoftPair, j*k+l, x*y)
		}
	}
	visit(s.Hard, p.own, 1)
	visit(s.HardPair, p.own*k+p.majority, 1)
}

// variance fills OwnVariance.
func (w *world) variance(s *stats.Statistics, c community) {
	for i, v := range c.members {
		if w.labels[v] >= 0 || w.predictions[v] == nil {
			continue
		}
		for a := range s.K {
			x := w.predictions[v][a] - s.Soft.P[a]
			s.OwnVariance[a] += c.weights[i] * x * x / s.Profiled
		}
	}
}

// rows sets the callbacks of the exact variances.
func (w *world) rows(s *stats.Statistics, c community, a []float64) {
	s.Rows = func(visit func(stats.Row)) {
		for v, l := range w.labels {
			if l >= 0 && w.predictions[v] != nil {
				visit(
					stats.Row{
						Class:     l,
						A:         a[v],
						Own:       w.predictions[v],
						Neighbors: w.profiles[v].neighbors,
					},
				)
			}
		}
	}
}

// readWorld reads a case folder and the edges of its dataset.
func readWorld(t testing.TB, caseDir, dataDir string, classes int) *world {
	w := &world{classes: classes}
	readRows(t, caseDir+"/predictions.csv.gz", func(f []string) {
		p := make([]float64, classes)
		for k := range p {
			p[k] = number(t, f[k+1])
		}
		v := int(number(t, f[0]))
		for len(w.predictions) <= v {
			w.predictions, w.labels = append(w.predictions, nil), append(w.labels, -1)
		}
		total := 0.0
		for _, x := range p {
			total += x
		}
		for k := range p {
			p[k] /= total
		}
		w.predictions[v] = p
	})
	w.edges = make(graph, len(w.predictions))
	readRows(t, dataDir+"/edges.csv.gz", func(f []string) {
		u, v := int(number(t, f[0])), int(number(t, f[1]))
		w.edges[u] = append(w.edges[u], int32(v))
		w.edges[v] = append(w.edges[v], int32(u))
	})
	readRows(t, caseDir+"/labels.csv.gz", func(f []string) {
		w.labels[int(number(t, f[0]))] = int(number(t, f[1]))
	})
	index := map[string]int{}
	readRows(t, caseDir+"/members.csv.gz", func(f []string) {
		i, ok := index[f[0]]
		if !ok {
			i = len(w.communities)
			index[f[0]] = i
			w.communities = append(w.communities, community{name: f[0]})
		}
		c := &w.communities[i]
		c.members = append(c.members, int(number(t, f[1])))
		c.weights = append(c.weights, number(t, f[2]))
	})
	w.describe()
	return w
}

// readRows calls visit with the fields of every line of a gzipped CSV file after
// its header.
func readRows(t testing.TB, path string, visit func([]string)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatalf("reference data: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("reference data %s: %v", path, err)
	}
	scanner := bufio.NewScanner(z)
	scanner.Scan()
	for scanner.Scan() {
		visit(strings.Split(scanner.Text(), ","))
	}
	if err := scanner.Err(); err != nil {
		t.Fatalf("reference data %s: %v", path, err)
	}
}

// number parses a field.
func number(t testing.TB, field string) float64 {
	x, err := strconv.ParseFloat(field, 64)
	if err != nil || math.IsNaN(x) {
		t.Fatalf("reference data: %q is not a number", field)
	}
	return x
}
