package wire

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"gqlstream/ingest/event"
)

// numberTextMax bounds a time or a time to live that is given as text.
const numberTextMax = 64

// parseTime reads a time: RFC 3339, or Unix seconds in decimal with or without a fraction (to the
// nanosecond). Times lie between 1823 and 2116. The Unix epoch itself reads as "not given".
func parseTime(s string) (event.Time, *event.Problem) {
	if len(s) > numberTextMax {
		return 0, event.Problemf(event.BadTime, "%s is neither RFC 3339 nor Unix seconds", Quote(s))
	}
	if isNumber(s) {
		if v, ok := nanos(s); ok {
			return event.Time(v), nil
		}
		return 0, event.Problemf(event.BadTime, "%s is out of range, give Unix seconds", Quote(s))
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, event.Problemf(event.BadTime, "%s is neither RFC 3339 nor Unix seconds", Quote(s))
	}
	if year := t.Year(); year > 1800 && year < 2200 { // else UnixNano wraps
		if v := event.Time(t.UnixNano()); v >= -event.TimeMax && v <= event.TimeMax {
			return v, nil
		}
	}
	return 0, event.Problemf(event.BadTime, "%s is not between 1823 and 2116", Quote(s))
}

// parseTTL reads a time to live: seconds in decimal, or a Go duration like
// "36h". It is positive and below 146 years.
func parseTTL(s string) (time.Duration, *event.Problem) {
	if len(s) > numberTextMax {
		return 0, badTTL(s)
	}
	if isNumber(s) {
		if v, ok := nanos(s); ok {
			return time.Duration(v), checkTTL(time.Duration(v))
		}
		return 0, event.Problemf(event.BadValue, "ttl %s is out of range", Quote(s))
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, badTTL(s)
	}
	return d, checkTTL(d)
}

// badTTL returns the problem of a text that is no time to live.
func badTTL(s string) *event.Problem {
	return event.Problemf(event.BadValue, `ttl %s is neither seconds nor a duration like "36h"`, Quote(s))
}

// checkTTL refuses a duration that is no time to live. Below TimeMax the sum of a time and a ttl fits.
func checkTTL(d time.Duration) *event.Problem {
	if d <= 0 || d > time.Duration(event.TimeMax) {
		return event.Problemf(event.BadValue, "ttl %v must be positive and below 146 years", d)
	}
	return nil
}

// isNumber reports whether text is a number as JSON writes it.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || isDigit(s[0])) && isDigit(s[len(s)-1]) && json.Valid(bytesOf(s))
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// areDigits reports whether text is digits only.
func areDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// nanos returns a number of seconds, as JSON writes it, in nanoseconds, to the nearest
// one and half of one away from zero. It returns false above 2^62 in magnitude.
func nanos(text string) (int64, bool) {
	f, _ := strconv.ParseFloat(text, 64) // the text is a number; overflow gives an infinity
	whole, fraction, _ := strings.Cut(text, ".")
	v, err := int64(math.Round(f*1e9)), error(nil)
	switch {
	case f == 0:
		return 0, true
	case math.Abs(f) > 5e9: // about 2^62 ns
		return 0, false
	case len(fraction) <= 9 && !strings.ContainsAny(text, "eE"):
		v, err = strconv.ParseInt(whole+fraction+"000000000"[len(fraction):], 10, 64)
	case len(text) <= numberTextMax: // beyond, exact arithmetic costs more than it tells
		r, _ := new(big.Rat).SetString(text)
		v, err = strconv.ParseInt(r.Mul(r, big.NewRat(1e9, 1)).FloatString(0), 10, 64)
	}
	return v, err == nil && v >= -int64(event.TimeMax) && v <= int64(event.TimeMax)
}
