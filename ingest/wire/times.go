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

// numberTextMax bounds the digits of a number of seconds that are read exactly, and the length of a
// time or a time to live in text: a table can repeat one text in every row, and reading it costs
// its length.
const numberTextMax = 64

// moment reads a time: a timestamp, RFC 3339, or Unix seconds in decimal with or without a fraction
// (to the nanosecond). Times lie between 1823 and 2116. The Unix epoch itself reads as "not given".
// Files may have any other text that means one moment, and Unix times in milliseconds and finer
// units.
func (d *Decoder) moment(f form, c *Cell) (event.Time, *event.Problem) {
	v, ok := int64(c.Integer), true
	switch {
	case f >= fileForm && c.Kind == TextCell && c.Text != "" && c.Text[0] == '@' &&
		isNumber(c.Text[1:]): // of GNU date
		v, ok = nanos(c.Text[1:])
	case c.Kind == TextCell && !isNumber(c.Text):
		t, p := d.momentOf(f, c)
		if p != nil {
			return 0, p
		}
		v, ok = t.UnixNano(), t.Year() > 1800 && t.Year() < 2200 // else UnixNano wraps
	case c.Kind == TimeCell && c.Naive:
		v = d.inZone(v)
	case c.Kind != TimeCell:
		if v, ok = c.nanos(); !ok {
			unit, name := c.unixUnit()
			if unit > 0 && f < fileForm {
				return 0, event.Problemf(event.BadTime,
					"%s is out of range, give Unix seconds or RFC 3339; these look like %s",
					c.String(), name)
			}
			if unit > 0 {
				scaled, _ := c.Float()
				if v, ok = scaledNanos(c, scaled, unit); ok {
					firstOf(&d.guessed.Scaled, &d.guessed.ScaledFirst, c, v)
				}
			}
		} else if f >= fileForm && v != 0 && v < smallTime && v > -smallTime {
			firstOf(&d.guessed.Small, &d.guessed.SmallFirst, c, v)
		}
	}
	if !ok || v < -int64(event.TimeMax) || v > int64(event.TimeMax) {
		return 0, event.Problemf(event.BadTime,
			"%s is out of range, give Unix seconds or RFC 3339, between 1823 and 2116",
			c.String())
	}
	return event.Time(v), nil
}

// smallTime bounds the Unix times, in nanoseconds, that may be no seconds since 1970: 1e8 s is a
// day of 1973. Day numbers of spreadsheets, years, dates such as 20240501 and seconds since another
// start are smaller.
const smallTime = 1e8 * int64(time.Second)

// firstOf counts a time that had to be interpreted. first becomes the first of them, with its
// meaning.
func firstOf(count *int, first *string, c *Cell, nanos int64) {
	if *count++; *count == 1 {
		*first = c.String() + " as " + time.Unix(0, nanos).UTC().Format(time.RFC3339)
	}
}

// lifetime reads a time to live: seconds in decimal, or a Go duration like
// "36h". It is positive and below 146 years, so that the sum of a time and a ttl fits.
func (c *Cell) lifetime() (time.Duration, *event.Problem) {
	v, ok := int64(0), true
	if c.Kind == TextCell && !isNumber(c.Text) {
		d, err := time.ParseDuration(c.Text)
		if err != nil {
			return 0, event.Problemf(event.BadValue,
				`ttl %s is neither seconds nor a duration like "36h"`, c.String())
		}
		v = int64(d)
	} else if v, ok = c.nanos(); !ok {
		return 0, event.Problemf(event.BadValue, "ttl of %s s is out of range", c.String())
	}
	if v <= 0 || v > int64(event.TimeMax) {
		return 0, event.Problemf(event.BadValue, "ttl %v must be positive and below 146 years",
			time.Duration(v))
	}
	return time.Duration(v), nil
}

// nanos converts a number of seconds to nanoseconds, exactly if the form has its digits.
func (c *Cell) nanos() (int64, bool) {
	switch {
	case c.Kind == UintCell:
		return int64(c.Integer * 1e9), c.Integer <= uint64(event.TimeMax)/1e9
	case c.Text != "":
		return nanos(c.Text)
	}
	v := math.Round(c.Number * 1e9)
	return int64(v), math.Abs(v) <= float64(event.TimeMax)
}

// isNumber reports whether text is a JSON number.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || isDigit(s[0])) && isDigit(s[len(s)-1]) &&
		json.Valid(bytesOf(s))
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

// nanos returns a number of seconds, in JSON form, in nanoseconds, rounded to nearest with halves
// away from zero. It returns false above 2^62 in magnitude.
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
	case len(text) <= numberTextMax: // beyond this, exact arithmetic costs more than it gains
		r, _ := new(big.Rat).SetString(text)
		v, err = strconv.ParseInt(r.Mul(r, big.NewRat(1e9, 1)).FloatString(0), 10, 64)
	}
	return v, err == nil && v >= -int64(event.TimeMax) && v <= int64(event.TimeMax)
}
