package wire

import (
	"strings"
	"testing"
	"time"
)

// Every text that programs write for one moment must be read as that moment.
func TestFilesHaveTimesInManyForms(t *testing.T) {
	noon := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2024-05-01T12:00:00Z":                                 noon,
		"2024-05-01 12:00:00+00:00":                            noon, // pandas, date --rfc-3339
		"2024-05-01 12:00:00+00":                               noon, // DuckDB, PostgreSQL
		"2024-05-01T12:00:00.000000+0000":                      noon, // Polars
		"2024-05-01 14:00:00.000 +0200":                        noon, // Snowflake
		"2024-05-01 12:00:00.000 Z":                            noon,
		"2024-05-01 12:00:00 UTC":                              noon, // BigQuery
		"2024-05-01T12:00:00.000Z":                             noon, // Spark
		"2024-05-01 17:30:00 +05:30":                           noon,
		"2024-05-01T14:00:00+02:00[Europe/Berlin]":             noon, // Java
		"2024-05-01T14:00:00[Europe/Berlin]":                   noon,
		"2024-05-01 14:00:00 Europe/Berlin":                    noon,
		"2024-05-01 08:00 America/New_York":                    noon,
		"@1714564800":                                          noon, // date
		"@1714564800.5":                                        noon.Add(time.Second / 2),
		"2024-05-01t12:00:00z":                                 noon,
		"2024-05-01T12:00Z":                                    noon,
		"2024/05/01 12:00:00Z":                                 noon,
		"20240501T120000Z":                                     noon,
		"2024-05-01 14:00:00 +0200 CEST m=+0.1":                noon, // Go
		"2024-05-01 12:00:00 +0000 UTC":                        noon,
		"Wed May 01 12:00:00 +0000 2024":                       noon, // Twitter
		"Wed, 01 May 2024 12:00:00 GMT":                        noon,
		"Wed, 01 May 2024 14:00:00 +0200":                      noon,
		"Wed May  1 12:00:00 UTC 2024":                         noon, // date
		"Wed May 01 2024 12:00:00 GMT+0000 (Coordinated Time)": noon, // JavaScript
		"2024-05-01T12:00:00,5Z":                               noon.Add(time.Second / 2),
		"2016-12-31T23:59:60Z": time.Date(2017, 1, 1, 0, 0, 0, 0,
			time.UTC),
		"2016-12-31 23:59:60+00:00": time.Date(2017, 1, 1, 0, 0, 0, 0,
			time.UTC),
		"2024-04-30T24:00:00Z": time.Date(2024, 5, 1, 0, 0, 0, 0,
			time.UTC),
		"1714564800":          noon,
		"1714564800000":       noon,
		"1714564800000000":    noon,
		"1714564800000000000": noon,
		"1714564800000.5":     noon.Add(500 * time.Microsecond),
	} {
		got, p := new(Decoder).moment(textForm, &Cell{Kind: TextCell, Text: text})
		if p != nil || int64(got) != want.UnixNano() {
			t.Errorf("%s: %v %v, want %v", text, got, p, want)
		}
	}
}

// A time without a zone is refused with the zone to append, and an ambiguous time is
// refused.
func TestTimesThatAreNoMomentAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"2024-05-01 12:00:00":           "no time zone: append Z",
		"2024-05-01T12:00:00.5":         "no time zone: append Z",
		"2024-05-01":                    "no time zone: append Z",
		"Wed May  1 12:00:00 2024":      "no time zone: append Z",
		"05/01/2024 12:00":              "neither RFC 3339",
		"01.05.2024 12:00":              "neither RFC 3339",
		"Wed May  1 12:00:00 CEST 2024": "the time zone CEST, and there are several",
		"2024-05-01 12:00:00 EST":       "the time zone EST, and there are several",
		"2024-05-01 12:00:00 Mars/Base": "neither RFC 3339",
		"@yesterday":                    "neither RFC 3339",
		"yesterday":                     "neither RFC 3339",
		"50000000000":                   "out of range",
	} {
		_, p := new(Decoder).moment(textForm, &Cell{Kind: TextCell, Text: text})
		if p == nil || !strings.Contains(p.Detail(), want) {
			t.Errorf("%s: %v, want %q", text, p, want)
		}
	}
}

// Numbers that may be no seconds are counted, and the first one is told with its meaning.
func TestTimesThatMayMeanSomethingElseAreCounted(t *testing.T) {
	for text, want := range map[string]Guesses{
		"45413.5":       {Small: 1, SmallFirst: `"45413.5" as 1970-01-01T12:36:53Z`}, // Excel
		"2013":          {Small: 1, SmallFirst: `"2013" as 1970-01-01T00:33:33Z`},
		"20240501":      {Small: 1, SmallFirst: `"20240501" as 1970-08-23T06:21:41Z`},
		"202405011200":  {Scaled: 1, ScaledFirst: `"202405011200" as 1976-05-31T15:36:51Z`},
		"1714564800000": {Scaled: 1, ScaledFirst: `"1714564800000" as 2024-05-01T12:00:00Z`},
		"1714564800":    {},
		"0":             {},
	} {
		d := new(Decoder)
		if _, p := d.moment(textForm, &Cell{Kind: TextCell, Text: text}); p != nil ||
			d.Guesses() != want {
			t.Errorf("%s: %+v, %v", text, d.Guesses(), p)
		}
	}
	d := new(Decoder)
	if _, p := d.moment(jsonForm, &Cell{Kind: TextCell, Text: "2013"}); p != nil ||
		d.Guesses() != (Guesses{}) {
		t.Errorf("a message: %+v, %v", d.Guesses(), p)
	}
}

// A time zone for files is that of their clocks, with its summer time.
func TestTimesWithoutAZoneAreReadInTheOneNamed(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	d := new(Decoder)
	d.SetZone(berlin)
	naive := time.Date(2024, 5, 1, 14, 0, 0, 0, time.UTC).UnixNano()
	want := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	for _, c := range []Cell{
		{Kind: TextCell, Text: "2024-05-01 14:00:00"},
		{Kind: TextCell, Text: "2024-05-01T14:00:00"},
		{Kind: TextCell, Text: "2024-05-01 12:00:00Z"},
		{Kind: TimeCell, Integer: uint64(naive), Naive: true},
	} {
		if got, p := d.moment(fileForm, &c); p != nil || int64(got) != want {
			t.Errorf("%v: %v %v", c, got, p)
		}
	}
	if g := d.Guesses(); g.Zoned != 3 {
		t.Errorf("%d times were read in the zone, want 3", g.Zoned)
	}
}
