package pipeline

import (
	"math"
	"testing"

	"gqlstream/ingest/event"
)

// Each RFC 3339 time names a place. A time outside the range of events is before or after
// all of them.
func TestEveryTimeIsAPlace(t *testing.T) {
	for text, want := range map[string]Place{
		"":                          {},
		"7":                         {Position: 7},
		"1970-01-01T00:00:00Z":      {Time: 1},
		"1970-01-01T00:00:01.5Z":    {Time: 1_500_000_000},
		"4497-03-12T17:02:32.21Z":   {Time: math.MaxInt64},
		"2262-04-12T00:00:00Z":      {Time: math.MaxInt64},
		"2262-04-11T23:47:16+00:00": {Time: event.Time(9_223_372_036_000_000_000)},
		"0001-01-01T00:00:00Z":      {Time: math.MinInt64 + 1},
	} {
		if got, err := ParsePlace("to", text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"0", "-1", "9007199254740992", "9223372036854775808", "x", "9999-13-01T00:00:00Z", "1.5",
	} {
		if got, err := ParsePlace("to", text); err == nil {
			t.Errorf("%q is %+v; want an error", text, got)
		}
	}
}
