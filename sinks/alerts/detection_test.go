package alerts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/quant"
)

// detectionNote has the documented costs and detections of rules.
const detectionNote = "../../docs/notes/2026-11-22-alert-detection.md"

// The simulated streams of the table in the note.
const (
	detectionEvery = 10 * second // between two estimates
	detectionShare = 0.25        // before a jump
	detectionSE    = 0.02
	detectionSeed  = 41
	quietDays      = 30
	jumpRuns       = 100
	jumpHours      = 6 // a detection later after a jump does not count
)

// stream is a community with known truth and with the errors of estimates: the common part
// of the errors of two estimates fades within a fixed time.
type stream struct {
	random *rand.Rand
	keeps  float64 // of the error, to the next estimate
	error  float64
}

func newStream(seed uint64, lasts time.Duration) *stream {
	s := &stream{
		random: rand.New(rand.NewPCG(seed, detectionSeed)),
		keeps:  math.Exp(-float64(detectionEvery) / float64(lasts)),
	}
	s.error = detectionSE * s.random.NormFloat64()
	return s
}

// next returns the next estimate of a truth.
func (s *stream) next(truth float64) quant.Estimate {
	s.error = s.keeps*s.error + math.Sqrt(1-s.keeps*s.keeps)*detectionSE*s.random.NormFloat64()
	return record("x", truth+s.error, detectionSE, detectionSE*math.Sqrt(2*(1-s.keeps)))
}

// detectionRules are the rows of the table.
func detectionRules(t testing.TB) []Rule {
	back := 0.27
	return []Rule{
		rule(t, "point > 0.3", nil),
		rule(t, "low > 0.3", nil),
		rule(t, "low > 0.3", func(r *Rule) { r.For, r.Recover = 5*time.Minute, &back }),
		rule(t, "high < 0.2", nil),
		rule(t, "change > 0.08", func(r *Rule) { r.Over, r.Every = time.Hour, time.Minute }),
		rule(t, "change over 1h", func(r *Rule) { r.Every = time.Minute }),
		rule(t, "cusum > 5", nil),
		rule(t, "cusum > 8", nil),
		rule(t, "cusum", nil),
	}
}

// describe is the rule as the table names it.
func describe(r Rule) string {
	r = r.WithDefaults()
	text := "`" + r.When.String() + "`"
	if r.Threshold > 0 {
		text = fmt.Sprintf("`cusum > %v`", r.Threshold)
	}
	if r.Over > 0 {
		text += fmt.Sprintf(" over %v", short60(r.Over))
	}
	if r.When.Quantity == High {
		text += " (jumps down)"
	}
	if r.Every > 0 {
		text += fmt.Sprintf(", every %v", short60(r.Every))
	}
	if r.For > 0 {
		text += fmt.Sprintf(", for %v, recover %v", short60(r.For), *r.Recover)
	}
	return text
}

// short60 is a duration without its zeros.
func short60(d time.Duration) string {
	text, _ := strings.CutSuffix(d.String(), "m0s")
	if hours, whole := strings.CutSuffix(text, "h0"); whole {
		return hours + "h"
	}
	return text + "m"
}

// firings runs one rule over a truth and returns when it fired.
func firings(t testing.TB, r Rule, s *stream, n int64, truth func(at int64) float64) (at []int64) {
	e, err := New(config(r))
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]quant.Estimate{}
	for i := range n {
		now := i * detectionEvery
		list := one(s.next(truth(now)))
		moves(before, list)
		for _, x := range e.Evaluate(Moment{Position: uint64(i + 1), Time: start + now}, list) {
			if x.State == Firing {
				at = append(at, now)
			}
		}
	}
	return at
}

// falsePerDay counts the alarms on a truth that never moves.
func falsePerDay(t testing.TB, r Rule, lasts time.Duration) string {
	n := quietDays * 24 * 3600 * second / detectionEvery
	alarms := firings(
		t, r, newStream(detectionSeed, lasts), n, func(int64) float64 { return detectionShare },
	)
	return fmt.Sprintf("%.2f", float64(len(alarms))/quietDays)
}

// delay is the share of jumps that were found, and their median delay. A rule that waits
// for something to fall gets jumps down.
func delay(t testing.TB, r Rule, by float64, lasts time.Duration) string {
	if r.Threshold == 0 && !r.When.Budgeted && !r.When.Above {
		by = -by
	}
	const jump = 2 * 3600 * second
	var delays []int64
	for run := range uint64(jumpRuns) {
		truth := func(at int64) float64 {
			if at >= jump {
				return detectionShare + by
			}
			return detectionShare
		}
		n := (jump + jumpHours*3600*second) / detectionEvery
		for _, at := range firings(t, r, newStream(1000+run, lasts), n, truth) {
			if at >= jump {
				delays = append(delays, at-jump)
				break
			}
		}
	}
	if len(delays) == 0 {
		return "0 %"
	}
	slices.Sort(delays)
	median := time.Duration(delays[len(delays)/2]).Round(time.Second)
	return fmt.Sprintf("%.0f %%, %v", 100*float64(len(delays))/jumpRuns, median)
}

// The first table of the note must agree with the rules: false alarms on a quiet day, and
// the time until a jump is found.
func TestDetectionAndFalseAlarmsAreAsDocumented(t *testing.T) {
	text, err := os.ReadFile(detectionNote)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range detectionRules(t) {
		row := "| " + strings.Join([]string{
			describe(r), falsePerDay(t, r, 10*time.Minute), falsePerDay(t, r, 4*time.Hour),
			delay(t, r, 0.05, time.Hour), delay(t, r, 0.1, time.Hour), delay(t, r, 0.2, time.Hour),
		}, " | ") + " |"
		t.Logf("seed %d: %s", detectionSeed, row)
		if !strings.Contains(string(text), row) {
			t.Errorf("%s does not have\n%s", detectionNote, row)
		}
	}
}
