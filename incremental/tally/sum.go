package tally

import (
	"math"
	"math/bits"
)

// Sum is an exact sum of non-negative numbers: a 128-bit integer in units of 2^-80. A term is cut
// to that unit once, when it is added or taken back, and the rest is integer arithmetic: the order
// of the terms cannot show, and taking a term back leaves no trace. Terms and the sum lie below
// 2^47; the squared weight of the oldest label that counts is one unit.
type Sum struct {
	hi, lo uint64
}

const (
	sumUnitBits = 80
	sumMax      = 1 << 47 // of a term
)

// Add adds x, 0 <= x < 2^47 (sign 1), or takes back a term that was added (sign -1). Values outside
// are cut to the range.
func (s *Sum) Add(x float64, sign int) {
	hi, lo := fixed(x)
	var carry uint64
	if sign > 0 {
		s.lo, carry = bits.Add64(s.lo, lo, 0)
		s.hi, _ = bits.Add64(s.hi, hi, carry)
	} else {
		s.lo, carry = bits.Sub64(s.lo, lo, 0)
		s.hi, _ = bits.Sub64(s.hi, hi, carry)
	}
}

// Float returns the sum, rounded.
func (s Sum) Float() float64 {
	// both products are exact
	return float64(float64(s.hi)*0x1p-16) + float64(float64(s.lo)*0x1p-80)
}

// fixed returns x in units of 2^-80, cut towards zero. NaN and negative numbers give 0.
func fixed(x float64) (hi, lo uint64) {
	if !(x > 0) {
		return 0, 0
	}
	if x >= sumMax {
		x = math.Nextafter(sumMax, 0)
	}
	b := math.Float64bits(x)
	mantissa := b&(1<<52-1) | 1<<52
	shift := int(b>>52) - 1075 + sumUnitBits
	switch {
	case shift >= 64:
		return mantissa << (shift - 64), 0
	case shift >= 0:
		return mantissa >> (64 - shift), mantissa << shift
	default:
		return 0, mantissa >> -shift
	}
}
