package event

import (
	"math"
	"time"
)

// numberTextMax bounds a time or a time to live that is given as text.
const numberTextMax = 64

// ParseTime reads a time: RFC 3339, or Unix seconds in decimal with or without a
// fraction (to the nanosecond). Times lie between 1823 and 2116. The Unix epoch
// itself reads as "not given". The error is a *Problem.
func ParseTime(s string) (Time, error) {
	t, p := parseTime(s)
	return t, asError(p)
}

func parseTime(s string) (Time, *Problem) {
	if len(s) > numberTextMax {
		return 0, problemf(BadTime, "%s is neither RFC 3339 nor Unix seconds", quote(s))
	}
	var n number
	if end := scanNumber(s, &n); end > 0 && end == len(s) {
		return numberTime(&n)
	}
	if t, ok := parseUTC(s); ok {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, problemf(BadTime, "%s is neither RFC 3339 nor Unix seconds", quote(s))
	}
	if year := t.Year(); year > 1800 && year < 2200 { // else UnixNano wraps
		if v := Time(t.UnixNano()); v >= -TimeMax && v <= TimeMax {
			return v, nil
		}
	}
	return 0, problemf(BadTime, "%s is not between 1823 and 2116", quote(s))
}

// parseUTC reads the form that this package writes, 2006-01-02T15:04:05Z with or
// without a fraction of up to nine digits, and says no to every other.
func parseUTC(s string) (Time, bool) {
	if len(s) < 20 || s[len(s)-1] != 'Z' || s[4] != '-' || s[7] != '-' || s[10] != 'T' ||
		s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	year, a := twoDigits(s, 0)
	century := year
	year, b := twoDigits(s, 2)
	month, c := twoDigits(s, 5)
	day, d := twoDigits(s, 8)
	hour, e := twoDigits(s, 11)
	minute, f := twoDigits(s, 14)
	second, g := twoDigits(s, 17)
	if !(a && b && c && d && e && f && g) {
		return 0, false
	}
	year += 100 * century
	if year < 1824 || year > 2115 || month < 1 || month > 12 || day < 1 || day > 28 ||
		hour > 23 || minute > 59 || second > 59 {
		return 0, false // the last days of a month take the slow way
	}
	nanos := int64(0)
	if fraction := s[19 : len(s)-1]; fraction != "" {
		if fraction[0] != '.' || len(fraction) < 2 || len(fraction) > 10 {
			return 0, false
		}
		for i := range 9 {
			nanos *= 10
			if i+1 < len(fraction) {
				if fraction[i+1]-'0' > 9 {
					return 0, false
				}
				nanos += int64(fraction[i+1] - '0')
			}
		}
	}
	days := daysBefore(year, month) + int64(day-1)
	return Time(((days*24+int64(hour))*60+int64(minute))*60+int64(second))*1e9 + Time(nanos), true
}

// twoDigits reads the two digits of s at i.
func twoDigits(s string, i int) (int, bool) {
	x, y := s[i]-'0', s[i+1]-'0'
	return int(x)*10 + int(y), x <= 9 && y <= 9
}

// daysBefore returns the days from the Unix epoch to the first of a month in the
// proleptic Gregorian calendar (Hinnant, "chrono-compatible low-level date
// algorithms"), for years after 0.
func daysBefore(year, month int) int64 {
	y, m := int64(year), int64(month+9)%12 // years begin in March
	if month <= 2 {
		y--
	}
	return y*365 + y/4 - y/100 + y/400 + (m*153+2)/5 - 719468
}

// numberTime returns the time that is n seconds after the Unix epoch.
func numberTime(n *number) (Time, *Problem) {
	v, ok := n.nano()
	if !ok {
		return 0, problemf(BadTime, "%s is out of range, give Unix seconds", quote(n.text))
	}
	return Time(v), nil
}

// secondsTime returns the time that is s seconds after the Unix epoch.
func secondsTime(s float64) (Time, *Problem) {
	if f := math.Round(s * 1e9); math.Abs(f) <= float64(TimeMax) {
		return Time(f), nil
	}
	return 0, problemf(BadTime, "%v is out of range, give Unix seconds", s)
}

// ParseTTL reads a time to live: seconds in decimal, or a Go duration like
// "36h". It is positive and below 146 years. The error is a *Problem.
func ParseTTL(s string) (time.Duration, error) {
	d, p := parseTTL(s)
	return d, asError(p)
}

func parseTTL(s string) (time.Duration, *Problem) {
	if len(s) > numberTextMax {
		return 0, badTTL(s)
	}
	var n number
	if end := scanNumber(s, &n); end > 0 && end == len(s) {
		return numberTTL(&n)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, badTTL(s)
	}
	return d, checkTTL(d)
}

// badTTL is the problem of text that is no time to live.
func badTTL(s string) *Problem {
	return problemf(BadValue, `ttl %s is neither seconds nor a duration like "36h"`, quote(s))
}

// numberTTL returns n seconds.
func numberTTL(n *number) (time.Duration, *Problem) {
	v, ok := n.nano()
	if !ok {
		return 0, problemf(BadValue, "ttl %s is out of range", quote(n.text))
	}
	return time.Duration(v), checkTTL(time.Duration(v))
}

// secondsTTL returns s seconds.
func secondsTTL(s float64) (time.Duration, *Problem) {
	if f := math.Round(s * 1e9); math.Abs(f) <= float64(TimeMax) {
		return time.Duration(f), checkTTL(time.Duration(f))
	}
	return 0, problemf(BadValue, "ttl of %v s is out of range", s)
}

// checkTTL refuses what is not a time to live. With TimeMax, time plus ttl fits.
func checkTTL(d time.Duration) *Problem {
	if d <= 0 || d > time.Duration(TimeMax) {
		return problemf(BadValue, "ttl %v must be positive and below 146 years", d)
	}
	return nil
}
