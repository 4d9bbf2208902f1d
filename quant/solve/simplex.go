package solve

import (
	"fmt"
	"math"
	"slices"
)

// ProjectSimplex writes to dst the point of the probability simplex { x : x[k] >= 0, sum of x = 1 }
// nearest to v, and returns dst. dst and v have length K >= 1 and may be the same slice; v is
// finite. It panics if the lengths differ or K is 0: both are mistakes of the caller. Method: sort
// and threshold (Held, Wolfe and Crowder, 1974). O(K log K).
func ProjectSimplex(dst, v []float64) []float64 {
	if len(dst) != len(v) || len(v) == 0 {
		panic(fmt.Sprintf("solve: project %d shares into %d", len(v), len(dst)))
	}
	var small [64]float64
	sorted := append(small[:0], v...)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	var running, threshold float64
	for i, x := range sorted {
		running += x
		if t := (running - 1) / float64(i+1); x > t {
			threshold = t
		}
	}
	for i, x := range v {
		dst[i] = max(x-threshold, 0)
	}
	return dst
}

// NormalQuantile is the z with P(|t| <= z) = confidence for a standard normal t.
func NormalQuantile(confidence float64) float64 {
	return math.Sqrt2 * math.Erfinv(confidence)
}

// Bonferroni is the quantile that holds for n normals together, with any correlation.
func Bonferroni(confidence float64, n int) float64 {
	return NormalQuantile(1 - (1-confidence)/float64(n))
}
