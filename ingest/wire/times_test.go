package wire

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gqlstream/ingest/event"
)

// numberTexts are numbers, and texts that are nearly numbers.
var numberTexts = []string{
	"0", "-0", "1", "-1", "01", "1.", ".5", "1.5", "1e5", "1E+5", "1e-5", "1e", "1e+", "--1", "+1",
	"9007199254740993", "18446744073709551615", "18446744073709551616", "99999999999999999999",
	"0.1", "0.3", "1e22", "1e23", "123456789012345678", "1.7976931348623157e308", "1e308", "1e309",
	"1e999999999999", "5e-324", "1e-400", "0.000000000000000000000000000001", "1e-22", "1e-23",
	"4503599627370497.5", "0e1000000", "-0.0", "NaN", "Infinity", "0x10", "1_000", " 1", "1 ", "",
	"0.30000000000000004", "2.2250738585072011e-308", "9223372036854775807", "1e19", "1e20",
	"0000", "-", "-.5", "1.7976931348623159e308", "100000000000000000000000000000000000000000",
}

var genNumberText = rapid.OneOf(
	rapid.SampledFrom(numberTexts),
	rapid.StringMatching(`-?[0-9]{1,22}(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,3})?`),
)

// A number is one exactly when encoding/json says so, and its value the one that
// strconv gives.
func TestNumbersAreThoseOfStrconv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := genNumberText.Draw(t, "number")
		checkNumber(t, text)
	})
	for _, text := range numberTexts {
		checkNumber(t, text)
	}
}

func checkNumber(t interface{ Fatalf(string, ...any) }, text string) {
	whole := isNumber(text)
	if valid := json.Valid([]byte(text)) && text != "" && text[0] != ' ' &&
		text[len(text)-1] != ' '; whole != valid {
		t.Fatalf("%q: number %v, JSON number %v", text, whole, valid)
	}
	if !whole {
		return
	}
	var c Cell
	c.number(text)
	want, _ := strconv.ParseFloat(text, 64)
	if got := c.Number; c.Kind == NumberCell && math.Float64bits(got) != math.Float64bits(want) {
		t.Fatalf("%q: float %v, strconv %v", text, got, want)
	}
	u, err := strconv.ParseUint(text, 10, 64)
	if ok := c.Kind == UintCell; ok != (err == nil) || ok && c.Integer != u {
		t.Fatalf("%q: uint %d %v, strconv %d %v", text, c.Integer, ok, u, err)
	}
	checkNano(t, text, want)
}

// checkNano compares nanos with exact arithmetic.
func checkNano(t interface{ Fatalf(string, ...any) }, text string, value float64) {
	if value == 0 || value > 1e300 || value < -1e300 { // exact arithmetic could take for ever
		if got, ok := nanos(text); got != 0 || ok != (value == 0) {
			t.Fatalf("%q: nanos %d %v", text, got, ok)
		}
		return
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no rational", text)
	}
	exact.Mul(exact, big.NewRat(1e9, 1))
	got, ok := nanos(text)
	magnitude, _ := new(big.Rat).Abs(exact).Float64()
	if ok != (magnitude <= 1<<62) && math.Abs(magnitude-1<<62) > 1 {
		t.Fatalf("%q: nanos in range %v, it is %v", text, ok, magnitude)
	}
	if !ok {
		return
	}
	off, _ := new(big.Rat).Sub(exact, new(big.Rat).SetInt64(got)).Float64()
	if math.Abs(off) > 0.5 {
		t.Fatalf("%q: nano %d is off by %v", text, got, off)
	}
}

// RFC 3339 reads as the time package reads it, in the form that has a fast way
// and in all others.
func TestTimesAreThoseOfThePackageTime(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		want, err := time.Parse(time.RFC3339, text)
		got, bad := new(Decoder).moment(jsonForm, &Cell{Kind: TextCell, Text: text})
		if (err == nil) != (bad == nil) {
			t.Fatalf("%q: %v, package time: %v", text, bad, err)
		}
		if err == nil && got != event.Time(want.UnixNano()) {
			t.Fatalf("%q: %v, package time: %v", text, got, want)
		}
	}
	for _, text := range []string{
		"2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "2024-02-28T23:59:59.999999999Z",
		"1970-01-01T00:00:00.000000001Z", "1969-12-31T23:59:59Z", "1900-03-01T00:00:00Z",
		"2000-01-01T00:00:00+05:30", "2000-01-01T00:00:00.5-08:00", "2000-13-01T00:00:00Z",
		"2000-00-10T00:00:00Z", "2000-01-00T00:00:00Z", "2000-01-10T24:00:00Z",
		"2000-01-10T00:60:00Z",
		"2000-01-10T00:00:60Z", "2000-01-10T00:00:00.Z", "2000-01-10T00:00:00.1234567891Z",
		"2000-01-10T00:00:00.1x34Z", "2000-01-10 00:00:00Z", "2000-01-10T00:00:00",
		"x000-01-10T00:00:00Z",
		"2000-1-10T00:00:00Z", "+000-01-10T00:00:00Z", "2000-01-10T00:00:00Zx", "", "Z", "now",
	} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(0, int64(genTime.Draw(t, "time"))).
			In(time.FixedZone("", 60*rapid.IntRange(-800, 800).Draw(t, "zone")))
		layout := rapid.SampledFrom([]string{
			time.RFC3339, time.RFC3339Nano,
			"2006-01-02T15:04:05.000Z07:00",
		}).
			Draw(t, "layout")
		check(t, at.UTC().Format(layout))
		check(t, at.Format(layout))
	})
}

// Times and times to live outside their range are refused, up to the last
// nanosecond.
func TestTimeLimits(t *testing.T) {
	for text, want := range map[string]event.Time{
		"4611686018.427387904": event.TimeMax, "-4611686018.427387904": -event.TimeMax, "0": 0,
		"1.5": 1.5e9,
		"1e9": 1e18, "0.0000000004": 0, "0.0000000005": 1,
		"2116-02-20T23:53:38.427387904Z": event.TimeMax,
	} {
		if got, err := new(Decoder).moment(jsonForm,
			&Cell{Kind: TextCell, Text: text}); err != nil ||
			got != want {
			t.Errorf("%s: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"4611686018.427387905", "1700000000000", "-1e10", "1e400", "2116-02-20T23:53:38.427387905Z",
		"1800-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "NaN", "1700000000,5",
	} {
		if got, err := new(Decoder).moment(jsonForm,
			&Cell{Kind: TextCell, Text: text}); err == nil {
			t.Errorf("%s: %v, want an error", text, got)
		}
	}
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "0.5": time.Second / 2, "36h": 36 * time.Hour,
		"1h2m3s":               3723 * time.Second,
		"4611686018.427387904": time.Duration(event.TimeMax),
	} {
		if got, err := (&Cell{Kind: TextCell, Text: text}).lifetime(); err != nil || got != want {
			t.Errorf("ttl %s: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"0", "-1", "-1h", "0s", "", "5 min", "4611686018.427387905",
		"1e300",
	} {
		if got, err := (&Cell{Kind: TextCell, Text: text}).lifetime(); err == nil {
			t.Errorf("ttl %s: %v, want an error", text, got)
		}
	}
}
