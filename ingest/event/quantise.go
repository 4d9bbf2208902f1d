package event

import (
	"cmp"
	"math"
	"slices"
)

// Quantise writes to dst the probabilities p in units of 2^-30: K integers that
// sum to exactly One. dst and p have length K >= 1. The probabilities may sum to
// anything within 1e-3 of one and are normalised first. Every unit is the share
// rounded down or up: the largest remainders go up, the lowest index on ties, so
// equal input gives equal units everywhere. Units divided by One come back as
// they were.
//
// It returns a *Problem, NotFinite or NotNormal, when p is not a distribution;
// dst then holds nothing of use. It panics if the lengths differ.
func Quantise(dst []uint32, p []float64) error { return asError(quantise(dst, p)) }

func quantise(dst []uint32, p []float64) *Problem {
	if len(dst) != len(p) {
		panic("event: Quantise: lengths differ")
	}
	sum := 0.0
	for k, x := range p {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return problemf(NotFinite, "probability of class %d is %v", k, x)
		}
		if x < 0 {
			return problemf(NotNormal, "probability of class %d is %v", k, x)
		}
		sum += x
	}
	if !(math.Abs(sum-1) <= sumTolerance) {
		return problemf(NotNormal, "probabilities sum to %v, must be within %v of one", sum, sumTolerance)
	}
	scale := One / sum
	rest := int64(One)
	for k, x := range p {
		dst[k] = uint32(x * scale)
		rest -= int64(dst[k])
	}
	switch {
	case rest > 0:
		spread(dst, p, scale, rest)
	case rest < 0: // a product that rounded up to a whole unit
		takeBack(dst, rest)
	}
	return nil
}

// spread adds rest units to dst, one each to the largest remainders of p*scale.
// More than K are left only when the roundings of scale add up; they go round.
func spread(dst []uint32, p []float64, scale float64, rest int64) {
	var small [64]int32
	order := small[:0]
	if len(p) > len(small) {
		order = make([]int32, 0, len(p))
	}
	for k := range p {
		order = append(order, int32(k))
	}
	remainder := func(k int32) float64 { return p[k]*scale - math.Floor(p[k]*scale) }
	slices.SortFunc(order, func(i, j int32) int {
		if c := cmp.Compare(remainder(j), remainder(i)); c != 0 {
			return c
		}
		return cmp.Compare(i, j)
	})
	for ; rest > 0; rest -= int64(len(order)) {
		for _, k := range order[:min(rest, int64(len(order)))] {
			dst[k]++
		}
	}
}

// takeBack removes -rest units from dst, from the largest share.
func takeBack(dst []uint32, rest int64) {
	largest := 0
	for k, u := range dst {
		if u > dst[largest] {
			largest = k
		}
	}
	dst[largest] -= uint32(-rest)
}
