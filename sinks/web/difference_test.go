package web

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks"
)

// The difference of two communities, now or at a time, and of one at two times must have
// the error that package quant computes, as JSON and as CSV. An impossible comparison must
// be refused.
func TestDifferencesAreAnswered(t *testing.T) {
	s := serve(t, nil)
	a, b := estimate("a", "auto", 1, 0.5), estimate("b", "auto", 1, 0.3)
	a.SE, b.SE, a.Posterior, b.Posterior = []float64{0.05, 0.05}, []float64{0.04, 0.04}, 1, 1
	a.Influence, b.Influence = []float64{0.03, -0.03}, []float64{0.03, -0.03}
	write(t, s, a, b)
	if code, _, body := get(t, s, "/api/v1/communities/a/difference"); code != 404 {
		t.Errorf("without everyone: %d %s", code, body)
	}
	everyone := b
	everyone.Community = "everyone"
	write(t, s, everyone)
	later := estimate("a", "auto", 3601, 0.7)
	later.SE = []float64{0.05, 0.05}
	last := estimate("a", "auto", 7201, 0.2)
	last.SE = []float64{0.05, 0.05}
	write(t, s, later)
	for _, contradiction := range []string{
		"a/difference?at=1&until=1", "a/difference?until=1", "a/difference?at=1&until=2&other=b",
		"a/difference?other=a", "everyone/difference",
	} {
		if code, _, body := get(t, s, "/api/v1/communities/"+contradiction); code != 409 {
			t.Errorf("%s: code %d, want 409: %s", contradiction, code, body)
		}
	}
	for query, want := range map[string][2]float64{
		"":                                {0.4, math.Hypot(0.05, 0.04)},
		"other=b":                         {0.4, math.Hypot(0.05, 0.04)}, // of other coefficients
		"other=b&at=2026-01-01T00:30:00Z": {0.2, math.Sqrt(0.05*0.05 + 0.04*0.04 - 2*0.03*0.03)},
		"at=2026-01-01T00:30:00Z":         {0.2, math.Hypot(0.05, 0.05)},
	} {
		query = strings.ReplaceAll(
			query,
			"2026-01-01T00:30:00Z",
			logStart.Add(1800e9).UTC().Format("2006-01-02T15:04:05Z"),
		)
		d := into[differenceAnswer](t, s, "/api/v1/communities/a/difference?"+query).Estimate
		x := math.Max(d.Prevalence[0], d.Prevalence[1])
		if math.Abs(x-want[0]) > 1e-9 || math.Abs(d.SE[0]-want[1]) > 1e-9 ||
			d.Low[0] > d.Prevalence[0] ||
			d.High[0] < d.Prevalence[0] {
			t.Errorf(
				"%s: %v ± %v in [%v, %v], want %v ± %v", query, d.Prevalence, d.SE, d.Low, d.High,
				want[0], want[1],
			)
		}
	}
	write(t, s, last)
	at := func(seconds int) string {
		return logStart.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
	}
	for query, want := range map[string]float64{
		"at=" + at(1800):                        -0.3,
		"at=" + at(1800) + "&until=" + at(5400): 0.2,
	} {
		d := into[differenceAnswer](t, s, "/api/v1/communities/a/difference?"+query).Estimate
		if math.Abs(d.Prevalence[1]-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", query, d.Prevalence, want)
		}
	}
	if out := rows(t, s, "/api/v1/communities/a/difference?other=b&format=csv"); len(out) != 3 {
		t.Errorf("%d lines of CSV", len(out))
	}
	for query, want := range map[string]int{
		"?other=nobody":            404,
		"?at=1970-01-02T00:00:00Z": 404, "?other=b&method=pcc": 404,
	} {
		if code, _, body := get(t, s, "/api/v1/communities/a/difference"+query); code != want {
			t.Errorf("%q: %d %s, want %d", query, code, body, want)
		}
	}
}

// For times before those in memory, the difference of a community must use the record in
// the output log, and for still earlier times the last roll-up before, with the error from its
// interval.
func TestDifferencesReachBackBeyondMemory(t *testing.T) {
	old := estimate("a", "auto", 1, 0.3)
	old.SE = []float64{0.04, 0.04}
	begin := logStart.Add(-48 * time.Hour)
	s := serve(t, func(c *Config) {
		c.InForce = func(_ context.Context, community, method string, at time.Time) (quant.Estimate,
			bool, error,
		) {
			return old, community == "a" && method == "auto" &&
				!at.Before(logStart.Add(-time.Hour)), nil
		}
		c.Rollups = func(_ context.Context, q sinks.RollupQuery) (sinks.RollupAnswer, error) {
			r := sinks.Rollup{
				Until: begin.Add(30 * time.Second),
				Last:  []float64{0.6, 0.4},
				Low:   []float64{0.55, 0.35},
				High:  []float64{0.65, 0.45},
			}
			next := r
			next.Until = begin.Add(90 * time.Second)
			next.Last = []float64{0, 1}
			return sinks.RollupAnswer{Rollups: []sinks.Rollup{r, next}}, nil
		}
	})
	write(t, s, estimate("a", "auto", 3600, 0.7))
	for _, test := range []struct {
		ago  time.Duration
		x, e float64
	}{
		{10 * time.Minute, 0.4, math.Hypot(0.05, 0.04)},
		{48*time.Hour - time.Minute, 0.3, math.Hypot(0.05, 0.05/1.6449)},
		{20 * time.Hour, -0.3, math.Hypot(0.05, 0.05/1.6449)}, // that of the period before
	} {
		at := logStart.Add(-test.ago).UTC().Format(time.RFC3339)
		d := into[differenceAnswer](t, s, "/api/v1/communities/a/difference?at="+at).Estimate
		if math.Abs(d.Prevalence[1]-test.x) > 1e-6 || math.Abs(d.SE[1]-test.e) > 1e-4 {
			t.Errorf("%v ago: %v ± %v, want %v ± %v", test.ago, d.Prevalence, d.SE, test.x, test.e)
		}
	}
	if code, _, body := get(t, s, "/api/v1/communities/a/difference?at="+
		begin.UTC().Format(time.RFC3339)); code != 404 {
		t.Errorf("before everything: %d %s", code, body)
	}
}

// A difference has the position and the time of the newer of both records, although the text of
// a whole second comes after those of its parts.
func TestADifferenceIsOfTheNewerTime(t *testing.T) {
	a, b := estimate("a", "auto", 1, 0.5), estimate("b", "auto", 2, 0.3)
	b.Time = logStart.Add(time.Second + 500*time.Millisecond).Format(time.RFC3339Nano)
	for _, pair := range [][2]quant.Estimate{{a, b}, {b, a}} {
		d, err := quant.Difference(&pair[0], &pair[1])
		if err != nil || d.Position != 2 || d.Time != b.Time {
			t.Errorf("position %d, %s, %v; want that of %s", d.Position, d.Time, err, b.Time)
		}
	}
}
