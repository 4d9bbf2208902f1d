package main

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gonum.org/v1/gonum/floats"

	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
)

func truthAt(elapsed time.Duration, share float64, jumped time.Duration) []simulate.TruthRecord {
	record := simulate.TruthRecord{
		Time: event.Time(time.Hour + elapsed), Community: "a", Members: 100,
		Prevalence: []float64{share, 1 - share},
	}
	if jumped > 0 {
		record.Jumped = event.Time(time.Hour + jumped)
	}
	return []simulate.TruthRecord{record}
}

func estimatesOf(ours, plain float64) []quant.Estimate {
	return []quant.Estimate{
		{
			Community: "a", Method: demoOurs, Prevalence: []float64{ours, 1 - ours},
			Low: []float64{ours - 0.05, 0.95 - ours}, High: []float64{ours + 0.05, 1.05 - ours},
		},
		{Community: "a", Method: demoPlain, Prevalence: []float64{plain, 1 - plain}},
	}
}

// A truth must be held against the estimates that stand then, once something is known.
func TestDemoHoldsTheLatestEstimatesAgainstTheTruth(t *testing.T) {
	d := demo{latest: map[[2]string]quant.Estimate{}, cmd: &demoCmd{}}
	take := func(ours, plain float64) {
		for _, e := range estimatesOf(ours, plain) {
			d.latest[[2]string{e.Community, e.Method}] = e
		}
	}
	d.compare(11*time.Second, truthAt(11*time.Second, 0.5, 0)) // nothing is estimated
	take(0.1, 0.1)
	d.compare(5*time.Second, truthAt(5*time.Second, 0.9, 0)) // within the warm-up
	take(0.52, 0.6)
	d.compare(10*time.Second, truthAt(10*time.Second, 0.5, 0)) // 0.02 and 0.1, covered
	take(0.2, 0.2)
	take(0.7, 0.5)
	d.compare(
		30*time.Second,
		truthAt(30*time.Second, 0.8, 25*time.Second),
	) // 0.1 and 0.3, not covered, after a jump
	if !floats.EqualApprox(d.ours, []float64{0.02, 0.1}, 1e-12) ||
		!floats.EqualApprox(d.plain, []float64{0.1, 0.3}, 1e-12) ||
		!slices.Equal(d.covered, []float64{1, 1, 0, 0}) {
		t.Errorf("ours %v, plain %v, covered %v", d.ours, d.plain, d.covered)
	}
	if text := squeezed(strings.Join(d.lines(true), " ")); !strings.Contains(
		text,
		"a 100 0.700 [0.650 0.750] 0.800 0.500 jumped",
	) {
		t.Errorf("shows %s", text)
	}
}

// A picture must name every community, also one that has no estimate yet.
func TestDemoNamesEveryCommunity(t *testing.T) {
	d := &demo{cmd: &demoCmd{Duration: 5 * time.Minute}, latest: map[[2]string]quant.Estimate{}}
	for _, e := range estimatesOf(0.48, 0.55) {
		d.latest[[2]string{e.Community, e.Method}] = e
	}
	d.compare(
		time.Second,
		append(
			truthAt(time.Second, 0.5, time.Second),
			simulate.TruthRecord{Community: "b", Prevalence: []float64{0.3, 0.7}},
		),
	)
	text := strings.Join(strings.Fields(strings.Join(d.lines(true), " ")), " ")
	for _, want := range []string{
		"1s of 5m0s", "a 100 0.480 [0.430 0.530] 0.500 0.550 jumped b 0 waiting 0.300",
		"truth in our interval -",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A picture must fit a terminal of any size, and say that there are more communities than
// it shows.
func TestPicturesFitTheTerminal(t *testing.T) {
	for _, size := range [][2]int{{200, 60}, {80, 24}, {20, 4}, {1, 1}, {0, 0}} {
		lines := fitted(slices.Repeat([]string{strings.Repeat("né", 60)}, 40), size[0], size[1])
		if len(lines) > max(size[1], 40) || size[1] > 0 && len(lines) > size[1] {
			t.Fatalf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > size[0] {
				t.Fatalf("%v: %d characters", size, n)
			}
		}
		if size[1] == 24 && lines[23] != "… and 17 more" {
			t.Errorf("the last line is %q", lines[23])
		}
	}
}

// Numbers must be grouped by thousands.
func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
