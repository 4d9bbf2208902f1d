package web

import (
	"math"
	"strings"
	"testing"
)

// The difference of two communities, now or at a time, and of one at two times must have the
// error that quant says, as JSON and as CSV; what cannot be compared is refused.
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
	write(t, s, later)
	for query, want := range map[string][2]float64{
		"":                                {0.4, math.Hypot(0.05, 0.04)},
		"other=b":                         {0.4, math.Hypot(0.05, 0.04)}, // of other coefficients
		"other=b&at=2026-01-01T00:30:00Z": {0.2, math.Sqrt(0.05*0.05 + 0.04*0.04 - 2*0.03*0.03)},
		"at=2026-01-01T00:30:00Z":         {0.2, math.Hypot(0.05, 0.05)},
	} {
		query = strings.ReplaceAll(query, "2026-01-01T00:30:00Z", logStart.Add(1800e9).UTC().Format("2006-01-02T15:04:05Z"))
		d := into[differenceAnswer](t, s, "/api/v1/communities/a/difference?"+query).Estimate
		x := math.Max(d.Prevalence[0], d.Prevalence[1])
		if math.Abs(x-want[0]) > 1e-9 || math.Abs(d.SE[0]-want[1]) > 1e-9 || d.Low[0] > d.Prevalence[0] || d.High[0] < d.Prevalence[0] {
			t.Errorf("%s: %v ± %v in [%v, %v], want %v ± %v", query, d.Prevalence, d.SE, d.Low, d.High, want[0], want[1])
		}
	}
	if out := rows(t, s, "/api/v1/communities/a/difference?other=b&format=csv"); len(out) != 3 {
		t.Errorf("%d lines of CSV", len(out))
	}
	for query, want := range map[string]int{"?other=nobody": 404, "?at=1970-01-02T00:00:00Z": 404, "?other=b&method=pcc": 404} {
		if code, _, body := get(t, s, "/api/v1/communities/a/difference"+query); code != want {
			t.Errorf("%q: %d %s, want %d", query, code, body, want)
		}
	}
}
