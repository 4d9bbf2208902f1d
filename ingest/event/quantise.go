package event

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// sumTolerance bounds the distance of a sum of probabilities from one.
	sumTolerance = 1e-3
	// roundingMax bounds how far rounding may take a probability below zero.
	roundingMax = 1e-6
)

// Quantise writes the probabilities p to dst in units of 2^-30: K integers that sum to exactly One.
// dst and p have length K >= 1. The probabilities may sum to anything within 1e-3 of one and are
// normalised first; values down to -1e-6 count as zero. Every unit is the share rounded down or up:
// the largest remainders go up, the lowest index on ties, so equal input gives equal units on every
// machine. Units divided by One are reproduced exactly.
//
// It returns a problem, NotFinite or NotNormal, if p is not a distribution; dst is then undefined.
// It panics if the lengths differ or K is above ClassesMax: up to there the rounding errors of all
// shares together stay far below one unit, so the rest to distribute is never negative.
func Quantise(dst []uint32, p []float64) *Problem {
	if len(dst) != len(p) || len(p) > ClassesMax {
		panic(fmt.Sprintf("event: Quantise: %d units for %d probabilities", len(dst), len(p)))
	}
	sum := 0.0
	for k, x := range p {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Problemf(NotFinite, "probability of class %d is %v", k, x)
		}
		if x < 0 && x > -roundingMax {
			continue // rounding: it counts as zero
		}
		if x < 0 {
			return Problemf(NotNormal, "probability of class %d is %v", k, x)
		}
		sum += x
	}
	if !(math.Abs(sum-1) <= sumTolerance) {
		return Problemf(NotNormal, "probabilities sum to %v, must be within %v of one",
			sum, sumTolerance)
	}
	scale := One / sum
	rest := int64(One)
	for k, x := range p {
		dst[k] = uint32(max(x, 0) * scale)
		rest -= int64(dst[k])
	}
	if rest > 0 {
		spread(dst, p, scale, rest)
	}
	return nil
}

// spread adds rest units to dst, one each to the largest remainders of p*scale. rest is less than
// one unit a class.
func spread(dst []uint32, p []float64, scale float64, rest int64) {
	var small [64]int32
	order := small[:0]
	if len(p) > len(small) {
		order = make([]int32, 0, len(p))
	}
	for k := range p {
		order = append(order, int32(k))
	}
	remainder := func(k int32) float64 {
		share := float64(max(p[k], 0) * scale) // rounded here: never fused into the subtraction
		return share - math.Floor(share)
	}
	slices.SortFunc(order, func(i, j int32) int {
		if c := cmp.Compare(remainder(j), remainder(i)); c != 0 {
			return c
		}
		return cmp.Compare(i, j)
	})
	for _, k := range order[:rest] {
		dst[k]++
	}
}
