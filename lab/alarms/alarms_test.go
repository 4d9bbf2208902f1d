package alarms

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Most of these measurements compute the count themselves. This count must be the one that
// the core publishes, and the alarms must be the same. People join and leave, labels
// arrive, and a second model takes over from the first. During the takeover the core uses
// the first model's predictions of people who join.
func TestCountIsThatOfTheCore(t *testing.T) {
	w := world{Seed: 3, People: 3000, Quiet: 12 * time.Hour, Debates: true}
	var sums [2]map[string][2]float64
	var alarms [2]string
	for i := range sums {
		sum := map[string][2]float64{}
		tr := w.trial(t, 2)
		tr.Network.Communities, tr.Network.PostRate, tr.Network.Activity = 2, 0.5, 0.5
		tr.Network.LabelRate = 0.01
		tr.See = func(_ event.Time, records []quant.Estimate) {
			for _, e := range records {
				if len(e.Counted) > 0 {
					s := sum[e.Community]
					s[0] += e.Counted[0]
					s[1] += e.SECounted[0] * e.SECounted[0]
					sum[e.Community] = s
				}
			}
		}
		if i == 1 {
			tr.Core = core()
		}
		report, err := runTrial(t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range report.Alarms {
			alarms[i] += fmt.Sprintln(a.Rule, a.Community, a.Time)
		}
		sums[i] = sum
	}
	for community, want := range sums[0] {
		got := sums[1][community]
		if math.Abs(got[0]-want[0]) > 0.002 || math.Abs(got[1]/want[1]-1) > 0.05 {
			t.Errorf("%s: the core counts %v, want %v", community, got, want)
		}
	}
	if alarms[0] != alarms[1] || !strings.Contains(alarms[0], "group-0") {
		t.Errorf("alarms by count\n%sby the core\n%s", alarms[0], alarms[1])
	}
}

// 200 labels at once, each new fit of coefficients and another model give no alarm, and a few quiet
// days give hardly one.
func TestRevisionsGiveNoAlarm(t *testing.T) {
	tr := world{Seed: 6, People: 5000, Quiet: 36 * time.Hour}.trial(t, 0)
	tr.Core, tr.Network.Communities = core(), 20
	tr.Network.LabelRate = 0.01
	report, err := runTrial(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range report.Alarms {
		t.Error(a.Time, a.Rule, a.Text)
	}
}

// Ten points of a large community are found within a minute after its members have posted, with
// estimates of the whole product each ten seconds.
func TestJumpIsFound(t *testing.T) {
	w := world{Seed: 4, People: 5000, Quiet: 3 * time.Hour, Steady: true}
	tr := w.trial(t, 5)
	tr.Core, tr.Network.Communities, tr.Network.StepEvery = core(), 5, 10*time.Second
	tr.Network.Duration = w.Quiet + 5*movesEvery
	report, err := runTrial(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	moves, others := report.judge(moveShare/2, within)
	for _, m := range moves {
		if m.Delay < 0 || m.Delay > soon {
			t.Errorf("a move of %s is found after %v", m.Community, m.Delay)
		}
	}
	if len(moves) < 4 || len(others) > 0 {
		t.Errorf("moves %v, other alarms %v", moves, others)
	}
}
