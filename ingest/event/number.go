package event

import (
	"math"
	"math/bits"
	"strconv"
)

// number is a decimal number as JSON writes it: (-) mantissa * 10^exponent.
type number struct {
	text     string
	mantissa uint64
	exponent int
	negative bool
	integer  bool // digits only: neither a point nor an exponent
	exact    bool // mantissa and exponent say it all
}

// scanNumber reads the longest JSON number at the start of s and returns how
// many bytes it takes, 0 when there is none.
func scanNumber(s string, n *number) int {
	i := 0
	neg := false
	if len(s) > 0 && s[0] == '-' {
		neg = true
		i = 1
	}
	start := i
	var mantissa uint64
	for i < len(s) && s[i]-'0' <= 9 {
		mantissa = mantissa*10 + uint64(s[i]-'0') // wraps; exact below tells
		i++
	}
	digits := i - start
	if digits == 0 || (digits > 1 && s[start] == '0') {
		return 0
	}
	*n = number{mantissa: mantissa, negative: neg, integer: true, exact: digits <= 19}
	if i < len(s) && (s[i] == '.' || s[i]|0x20 == 'e') {
		if i = scanFraction(s, i, digits, n); i == 0 {
			return 0
		}
	}
	n.text = s[:i]
	return i
}

// scanFraction reads the fraction and the exponent of a number from s[i:] on,
// which follows digits digits of it. It returns where the number ends, or 0.
func scanFraction(s string, i, digits int, n *number) int {
	n.integer = false
	if s[i] == '.' {
		i++
		start := i
		for i < len(s) && s[i]-'0' <= 9 {
			n.mantissa = n.mantissa*10 + uint64(s[i]-'0')
			i++
		}
		if i == start {
			return 0
		}
		n.exponent = start - i
		n.exact = digits+i-start <= 19
	}
	if i == len(s) || s[i]|0x20 != 'e' {
		return i
	}
	i++
	neg := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	start, e := i, 0
	for i < len(s) && s[i]-'0' <= 9 {
		e = min(e*10+int(s[i]-'0'), 1<<20)
		i++
	}
	if i == start {
		return 0
	}
	if neg {
		e = -e
	}
	n.exponent += e
	return i
}

// powers holds the powers of ten that float64 holds exactly.
var powers = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// float returns the nearest float64, which is infinite when there is none.
func (n *number) float() float64 {
	if n.exact && n.mantissa < 1<<53 && n.exponent > -len(powers) && n.exponent < len(powers) {
		// Both factors are exact, so the one rounding is the right one (Clinger, 1990).
		f := float64(n.mantissa)
		if n.exponent < 0 {
			f /= powers[-n.exponent]
		} else {
			f *= powers[n.exponent]
		}
		if n.negative {
			f = -f
		}
		return f
	}
	f, _ := strconv.ParseFloat(n.text, 64) // the text is a number; overflow gives an infinity
	return f
}

// uint returns an integer that is written as digits only.
func (n *number) uint() (uint64, bool) {
	if !n.integer || n.negative {
		return 0, false
	}
	if n.exact {
		return n.mantissa, true
	}
	v, err := strconv.ParseUint(n.text, 10, 64)
	return v, err == nil
}

// nano returns the number times 10^9, to the nearest integer. ok is false when
// that is more than 2^62 in magnitude.
func (n *number) nano() (int64, bool) {
	v, ok := n.nanoMagnitude()
	if !ok || v > 1<<62 {
		return 0, false
	}
	if n.negative {
		return -int64(v), true
	}
	return int64(v), true
}

func (n *number) nanoMagnitude() (uint64, bool) {
	e := n.exponent + 9
	if n.mantissa == 0 && n.exact {
		return 0, true
	}
	if !n.exact || e >= len(powers) || e <= -len(powers) {
		f := math.Abs(n.float()) * 1e9
		return uint64(math.Round(f)), f < 1<<63
	}
	if e < 0 {
		if -e > 19 {
			return 0, true
		}
		p := pow10(-e)
		q, r := n.mantissa/p, n.mantissa%p
		if r >= p-r {
			q++
		}
		return q, true
	}
	if e > 19 {
		return 0, false
	}
	hi, lo := bits.Mul64(n.mantissa, pow10(e))
	return lo, hi == 0
}

// pow10 returns 10^e for 0 <= e <= 19.
func pow10(e int) uint64 {
	p := uint64(1)
	for range e {
		p *= 10
	}
	return p
}
