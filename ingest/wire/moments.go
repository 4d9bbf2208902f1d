package wire

import (
	"math"
	"regexp"
	"strings"
	"time"

	"gqlstream/ingest/event"
)

// momentOf reads a time from text. Messages use RFC 3339. Files may also have a space in place of
// the T, small letters, leap seconds, other forms of zones, and the layouts below.
func (d *Decoder) momentOf(f form, c *Cell) (time.Time, *event.Problem) {
	text, leap := c.Text, time.Duration(0)
	if f >= fileForm && len(text) > len("2006-01-02T") && text[len("2006-01-02")] == ' ' {
		text = text[:len("2006-01-02")] + "T" + text[len("2006-01-02 "):]
	}
	t, err := time.Parse(time.RFC3339, text)
	zoned, named := true, (*time.Location)(nil)
	if err != nil && f >= fileForm {
		text, named = namedZone(c.Text)
		text, leap = normalMoment(text)
		t, zoned, err = parseMoment(text)
	}
	switch shared, is := err.(sharedZone); {
	case is:
		return t, event.Problemf(event.BadTime, "%s names the time zone %s, and there are several "+
			"of that name: write its offset, such as +01:00", c.String(), string(shared))
	case err != nil && f >= fileForm:
		return t, event.Problemf(event.BadTime, "%s is neither RFC 3339 nor Unix seconds, "+
			"nor another form of one moment: write it as 2024-05-01T12:00:00Z", c.String())
	case err != nil:
		return t,
			event.Problemf(event.BadTime, "%s is neither RFC 3339 nor Unix seconds", c.String())
	case !zoned && named != nil:
		t = local(t, named)
	case !zoned && d.zone == nil:
		return t, event.Problemf(event.BadTime,
			"%s has no time zone: append Z or +01:00, or give --timezone", c.String())
	case !zoned:
		d.guessed.Zoned++
		t = local(t, d.zone)
	}
	return t.Add(leap), nil
}

// leapSecond matches the seconds of a leap second, midnight the end of a day (24:00).
var (
	leapSecond = regexp.MustCompile(`^(.*[T ]\d\d:59):60(?:\D|$)`)
	midnight   = regexp.MustCompile(`^(\d{4}-\d\d-\d\d[T ])24(:00(:00(\.0+)?)?)`)
	comment    = regexp.MustCompile(`\s*(\[[\w/+-]+\]|\([^()]*\))$`) // [Europe/Berlin], (CET)
	goZone     = regexp.MustCompile(`( [+-]\d{4}) [A-Z]{3,5}( m=[+-][\d.]+)?$`)
	zoneName   = regexp.MustCompile(`^(.*?)\s*\[?([A-Z][A-Za-z]+/[\w/+-]+)\]?$`)
	dated      = regexp.MustCompile(`^(\d{4})[-/](\d\d)[-/](\d\d)([tT_ ]|$)`)
	zone       = regexp.MustCompile(`\s*(?:UTC|GMT)?\s*([+-]\d\d):?(\d\d)?$`)
	universal  = regexp.MustCompile(`\s*(?:[zZ]|UTC|utc|GMT|gmt)$`)
)

// namedZone splits the name of a zone from the end of a time, as in 2024-05-01 12:00 Europe/Berlin.
// The zone is nil if there is none, or none of that name.
func namedZone(text string) (rest string, zone *time.Location) {
	m := zoneName.FindStringSubmatch(text)
	if m == nil {
		return text, nil
	}
	zone, err := time.LoadLocation(m[2])
	if err != nil {
		return text, nil
	}
	return m[1], zone
}

// normalMoment returns text in the form of RFC 3339, if it differs from it only in case,
// separators, fractions and zone; otherwise with those parts normalised. leap is the removed leap
// second.
func normalMoment(text string) (normal string, leap time.Duration) {
	text = goZone.ReplaceAllString(comment.ReplaceAllString(text, ""), "$1")
	if m := dated.FindStringSubmatch(text); m != nil && len(text) > len(m[0]) {
		text = m[1] + "-" + m[2] + "-" + m[3] + "T" + text[len(m[0]):]
		switch at := universal.FindStringIndex(text); {
		case at != nil:
			text = text[:at[0]] + "Z"
		default:
			if z := zone.FindStringSubmatchIndex(text); z != nil && z[0] > len("2006-01-02") {
				minutes := "00"
				if z[4] >= 0 {
					minutes = text[z[4]:z[5]]
				}
				text = text[:z[0]] + text[z[2]:z[3]] + ":" + minutes
			}
		}
	}
	if m := leapSecond.FindStringSubmatch(text); m != nil {
		text, leap = m[1]+":59"+text[len(m[1]+":60"):], time.Second
	}
	if m := midnight.FindStringSubmatch(text); m != nil {
		text, leap = m[1]+"00"+m[2]+text[len(m[0]):], 24*time.Hour
	}
	return text, leap
}

// layouts are the other forms of times in files, with zones. Days before months look like months
// before days, so forms without a month's name or a leading year are not read.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04Z07:00", "20060102T150405Z0700", "20060102T150405Z07:00",
	time.RubyDate, time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 -0700",
	time.UnixDate, time.RFC1123, "Mon, 2 Jan 2006 15:04:05 MST", "Mon Jan 2 15:04:05 2006 MST",
	"Mon Jan 02 2006 15:04:05 GMT-0700", "Mon Jan 2 03:04:05 PM MST 2006",
	"Mon _2 Jan 2006 03:04:05 PM MST", "Mon _2 Jan 15:04:05 MST 2006", "2006-01-02T15:04:05 MST",
}

// zoneless are the forms without a zone.
var zoneless = []string{
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "2006/01/02", "20060102T150405",
	time.ANSIC, "2 Jan 2006 15:04:05", "Jan 2, 2006 15:04:05", "Jan 2, 2006 3:04:05 PM",
}

// parseMoment reads a time in one of the layouts, and reports whether it has a zone. Zone
// abbreviations are read only if they mean UTC: others are ambiguous.
func parseMoment(text string) (t time.Time, zoned bool, err error) {
	for _, layout := range layouts {
		if t, err = time.Parse(layout, text); err != nil {
			continue
		}
		if name, _ := t.Zone(); strings.Contains(layout, "MST") && name != "UTC" && name != "GMT" {
			return t, true, sharedZone(name)
		}
		return t, true, nil
	}
	for _, layout := range zoneless {
		if t, err = time.Parse(layout, text); err == nil {
			return t, false, nil
		}
	}
	return t, false, err
}

// sharedZone is an abbreviation that several time zones share.
type sharedZone string

func (z sharedZone) Error() string { return "zone " + string(z) }

// local returns the moment at which clocks in a zone show the date and time of t.
func local(t time.Time, zone *time.Location) time.Time {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return time.Date(year, month, day, hour, minute, second, t.Nanosecond(), zone)
}

// inZone converts nanoseconds since 1970 on a clock of unknown zone: that of SetZone, or else UTC.
func (d *Decoder) inZone(v int64) int64 {
	if d.zone == nil {
		d.guessed.Assumed++
		return v
	}
	d.guessed.Zoned++
	return local(time.Unix(0, v).UTC(), d.zone).UnixNano()
}

// unixUnit returns the nanoseconds in the unit of a Unix time that is too large for seconds, and
// the unit's name; 0 if no unit fits. For times between 1973 and 2116 only one unit fits.
func (c *Cell) unixUnit() (unit int64, name string) {
	x, _ := c.Float()
	x = math.Abs(x)
	for _, u := range []struct {
		least float64
		unit  int64
		name  string
	}{{1e11, 1e6, "milliseconds"}, {1e14, 1e3, "microseconds"}, {1e17, 1, "nanoseconds"}} {
		if x >= u.least && x <= float64(event.TimeMax)/float64(u.unit) {
			return u.unit, u.name
		}
	}
	return 0, ""
}

// scaledNanos returns the Unix time x in units of that many nanoseconds. It is exact if the cell
// has all digits.
func scaledNanos(c *Cell, x float64, unit int64) (int64, bool) {
	if n, whole := c.Whole(); whole && n <= uint64(event.TimeMax)/uint64(unit) {
		return int64(n) * unit, true
	}
	whole, fraction := math.Modf(x)
	return int64(whole)*unit + int64(math.Round(fraction*float64(unit))), true
}
