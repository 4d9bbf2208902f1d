package diffusion

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gqlstream/graphstore"
)

// The kernels by name.
const (
	PPR = "ppr" // the field of this package, solved to a certificate
	// kernelSteps steps of x <- (1-a) P x + a m from x = m, with self-loops
	Truncated    = "truncated"
	Lazy         = "lazy"          // (a I + (1-a) A D^-1)^kernelSteps m, without self-loops
	ShortestPath = "shortest-path" // exp(-pathDecay * hops to the nearest source), 0 beyond hopsMax
	Features     = "features"      // <x(v), sum of m(u) x(u)>, x the attributes that are numbers
	Constant     = "constant"      // 1 everywhere
)

// KernelNames lists the kernels in the order of the documentation.
var KernelNames = []string{PPR, Truncated, Lazy, ShortestPath, Features, Constant}

// Parameters of the kernels other than ppr.
const (
	kernelSteps = 10
	pathDecay   = 1 // gamma of shortest-path, per hop
	hopsMax     = 10
)

// Kernel computes a kernel other than ppr (see Field for ppr): the mass of every vertex for the
// source m, one multiplicity >= 0 for every vertex of view. The values of the walks truncated and
// lazy, and those of features, sum to M, the sum of m; the other two are not scaled. They are exact
// to rounding. It panics if m does not have the length of the graph, or if there is no such kernel.
func Kernel(view graphstore.View, name string, m []float64, alpha float64) []float64 {
	if len(m) != view.Vertices() {
		panic(fmt.Sprintf("diffusion: source of length %d, graph of %d "+
			"vertices", len(m), view.Vertices()))
	}
	switch name {
	case Truncated:
		return walk(view, m, alpha, 1, kernelSteps)
	case Lazy:
		return walk(view, m, alpha, 0, kernelSteps)
	case ShortestPath:
		return shortestPath(view, m)
	case Features:
		return features(view, m)
	case Constant:
		return slices.Repeat([]float64{1}, len(m))
	}
	panic(fmt.Sprintf("diffusion: no kernel %q", name))
}

// walk takes steps of a walk from m, with a self-loop of weight 1 or 0 on every vertex. With
// self-loops walks return to m, which is the kernel truncated, in the code of Damke and
// Hüllermeier; without they rest where they are, which is lazy, as printed in their paper, and a
// vertex without edges keeps its mass.
func walk(view graphstore.View, m []float64, alpha, loop float64, steps int) []float64 {
	x, y, rest := slices.Clone(m), make([]float64, len(m)), m
	if loop == 0 {
		rest = x
	}
	for range steps {
		for v := range x {
			// not a number without edges, and not read then
			y[v] = x[v] / (view.Degree(Vertex(v)) + loop)
		}
		for v := range x {
			if view.Degree(Vertex(v))+loop > 0 {
				x[v] = (1-alpha)*(loop*y[v]+neighborSum(view, y, Vertex(v))) + alpha*rest[v]
			}
		}
	}
	return x
}

// neighborSum returns the weighted sum of x over the neighbours of v.
func neighborSum(view graphstore.View, x []float64, v Vertex) (sum float64) {
	neighbors, weights := view.Neighbors(v), view.Weights(v)
	if weights == nil {
		return gather(x, neighbors)
	}
	for i, u := range neighbors {
		sum += weights[i] * x[u]
	}
	return sum
}

// gather returns the sum of x over the neighbours. It has four sums: one would wait for every
// addition to finish before the next.
func gather(x []float64, neighbors []Vertex) float64 {
	var s0, s1, s2, s3 float64
	for len(neighbors) >= 4 {
		s0 += x[neighbors[0]]
		s1 += x[neighbors[1]]
		s2 += x[neighbors[2]]
		s3 += x[neighbors[3]]
		neighbors = neighbors[4:]
	}
	for _, u := range neighbors {
		s0 += x[u]
	}
	return (s0 + s1) + (s2 + s3)
}

// shortestPath searches breadth first from all sources at once; weights do not count.
func shortestPath(view graphstore.View, m []float64) []float64 {
	a := make([]float64, len(m))
	seen := make(bitmap, (len(m)+63)/64)
	var front, next []Vertex
	for v, x := range m {
		if x > 0 {
			seen.add(Vertex(v))
			front = append(front, Vertex(v))
		}
	}
	for hops := 0; len(front) > 0 && hops <= hopsMax; hops++ {
		value := math.Exp(-pathDecay * float64(hops))
		for _, v := range front {
			a[v] = value
			for _, u := range view.Neighbors(v) {
				if seen.add(u) {
					next = append(next, u)
				}
			}
		}
		front, next = next, front[:0]
	}
	return a
}

// features is the inner product of Damke and Huellermeier's supplement, which they show to be
// worse than ppr: how alike v is to the source, without the graph. A negative product counts
// as none, and so does an attribute beyond 1e9, of either sign.
func features(view graphstore.View, m []float64) []float64 {
	a := make([]float64, len(m))
	for _, key := range featureKeys(view) {
		sum := 0.0
		for v, x := range view.Numbers(key) {
			if math.Abs(x) <= 1e9 {
				sum += float64(m[v] * x)
			}
		}
		for v, x := range view.Numbers(key) {
			if math.Abs(x) <= 1e9 {
				a[v] += float64(sum * x)
			}
		}
	}
	all, mass := 0.0, 0.0
	for v := range a {
		a[v] = max(a[v], 0)
		all, mass = all+a[v], mass+m[v]
	}
	for v := range a {
		if a[v] > 0 {
			a[v] *= mass / all
		}
	}
	return a
}

// featureKeys returns the attributes that are features. One named label is none: in a file that
// serves as vertices and as labels, it is the class to be estimated.
func featureKeys(view graphstore.View) []string {
	return slices.DeleteFunc(view.AttributeKeys(), func(key string) bool { return key == "label" })
}

// CheckFeatures returns an error if no vertex has a feature: the kernel would be 0 everywhere.
func CheckFeatures(view graphstore.View) error {
	for _, key := range featureKeys(view) {
		for range view.Numbers(key) {
			return nil
		}
	}
	return errors.New("kernel features: no vertex has a number as an attribute; give a file of " +
		"them with --vertices")
}
