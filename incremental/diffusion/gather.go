package diffusion

import "math"

// The loops below carry four sums each: one would wait for every addition to
// finish before the next. The order of additions is fixed, so the bits are too.

// gather returns the sum of x over the neighbours.
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

// gatherWeighted returns the sum of weight times x over the neighbours.
func gatherWeighted(x []float64, neighbors []Vertex, weights []float64) float64 {
	var s0, s1, s2, s3 float64
	weights = weights[:len(neighbors)]
	for len(neighbors) >= 4 && len(weights) >= 4 {
		s0 += weights[0] * x[neighbors[0]]
		s1 += weights[1] * x[neighbors[1]]
		s2 += weights[2] * x[neighbors[2]]
		s3 += weights[3] * x[neighbors[3]]
		neighbors, weights = neighbors[4:], weights[4:]
	}
	for i, u := range neighbors {
		s0 += weights[i] * x[u]
	}
	return (s0 + s1) + (s2 + s3)
}

// gatherSizes returns gather of x and of |x|.
func gatherSizes(x []float64, neighbors []Vertex) (sum, size float64) {
	var s0, s1, s2, s3, t0, t1 float64
	for len(neighbors) >= 4 {
		x0, x1, x2, x3 := x[neighbors[0]], x[neighbors[1]], x[neighbors[2]], x[neighbors[3]]
		s0, s1, s2, s3 = s0+x0, s1+x1, s2+x2, s3+x3
		t0 += math.Abs(x0) + math.Abs(x1)
		t1 += math.Abs(x2) + math.Abs(x3)
		neighbors = neighbors[4:]
	}
	for _, u := range neighbors {
		s0 += x[u]
		t0 += math.Abs(x[u])
	}
	return (s0 + s1) + (s2 + s3), t0 + t1
}

// gatherSizesWeighted returns gatherWeighted of x and of |x|.
func gatherSizesWeighted(x []float64, neighbors []Vertex, weights []float64) (sum, size float64) {
	for i, u := range neighbors {
		size += weights[i] * math.Abs(x[u])
	}
	return gatherWeighted(x, neighbors, weights), size
}
