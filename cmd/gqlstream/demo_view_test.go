package main

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/simulate"
)

func truthAt(position event.Position, elapsed time.Duration, share float64, jumped time.Duration) demoTruth {
	record := simulate.TruthRecord{
		Time: event.Time(time.Hour + elapsed), Community: "a", Members: 100,
		Prevalence: []float64{share, 1 - share},
	}
	if jumped > 0 {
		record.Jumped = event.Time(time.Hour + jumped)
	}
	return demoTruth{position: position, elapsed: elapsed, records: []simulate.TruthRecord{record}}
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

// An estimate must be held against the newest truth at or before its position, and
// the error must go to the period that this truth belongs to.
func TestDemoScoresEstimatesAgainstTheTruthAtTheirPosition(t *testing.T) {
	board := newDemoBoard(10 * time.Second)
	board.expect(truthAt(5, 5*time.Second, 0.9, 0))                // within the warm-up
	board.expect(truthAt(10, 10*time.Second, 0.5, 0))              // calm
	board.expect(truthAt(20, 20*time.Second, 0.2, 0))              // passed together with the next
	board.expect(truthAt(30, 30*time.Second, 0.8, 25*time.Second)) // after a jump
	board.expect(truthAt(99, 99*time.Second, 0.1, 25*time.Second)) // not reached
	board.publish(6, estimatesOf(0.1, 0.1))                        // not scored
	board.publish(9, estimatesOf(0.2, 0.2))                        // passes no truth
	board.publish(12, estimatesOf(0.52, 0.6))                      // 0.02 and 0.1, covered
	board.publish(31, estimatesOf(0.7, 0.5))                       // 0.1 and 0.3, not covered
	want := demoScore{
		ours:    [2]errorMean{{0.02, 1}, {0.1, 1}},
		plain:   [2]errorMean{{0.1, 1}, {0.3, 1}},
		covered: [2]errorMean{{2, 2}, {0, 2}},
	}
	near := func(a, b errorMean) bool { return a.n == b.n && math.Abs(a.sum-b.sum) < 1e-12 }
	for period, name := range periodNames {
		if !near(board.score.ours[period], want.ours[period]) ||
			!near(board.score.plain[period], want.plain[period]) ||
			!near(board.score.covered[period], want.covered[period]) {
			t.Errorf("%s: %+v, want %+v", name, board.score, want)
		}
	}
	if row := board.rows[0]; row.truth != 0.8 || row.ours != 0.7 || !row.jumping {
		t.Errorf("shows %+v", row)
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// A frame must fit the terminal, whatever its size, and name every row it shows.
func TestDemoFrameFitsTheTerminal(t *testing.T) {
	frame := demoFrame{elapsed: time.Minute, total: 5 * time.Minute, vertices: 20_000, events: 1_234_567}
	for i := range 13 {
		frame.rows = append(frame.rows, demoRow{
			name: fmt.Sprintf("group-%02d", i), members: 100 * i, truth: 0.5, ours: 0.48, low: 0.4, high: 0.6,
			plain: 0.55, known: i != 3,
		})
	}
	for _, size := range [][2]int{{80, 24}, {100, 30}, {160, 50}, {200, 12}, {90, 1}} {
		width, height := size[0], size[1]
		lines := frame.lines(width, height, colours)
		if len(lines) > height {
			t.Errorf("%dx%d: %d lines", width, height, len(lines))
		}
		for _, line := range lines {
			text := escapes.ReplaceAllString(line, "")
			if n := utf8.RuneCountInString(text); n > width {
				t.Errorf("%dx%d: a line of %d characters: %q", width, height, n, text)
			}
		}
	}
	all := strings.Join(frame.lines(160, 50, palette{}), "\n")
	for _, row := range frame.rows {
		if !strings.Contains(all, row.name) {
			t.Errorf("%s is not shown", row.name)
		}
	}
	if strings.Contains(all, "\x1b") {
		t.Error("an empty palette leaves escape sequences")
	}
}

// The marks of a row must stand at their shares.
func TestDemoTrackPlacesItsMarks(t *testing.T) {
	row := demoRow{truth: 1, ours: 0.5, low: 0.4, high: 0.6, plain: 0}
	if got, want := row.track(11, palette{}), "○···━●━···┃"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	row = demoRow{truth: math.NaN(), ours: 2, low: -1, high: 3, plain: -0.1}
	if n := utf8.RuneCountInString(row.track(11, palette{})); n != 11 {
		t.Errorf("shares out of range give %d characters", n)
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
