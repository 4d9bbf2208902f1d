package alarms

import (
	"fmt"
	"os"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

const (
	emitEvery = 10 * time.Minute
	// alarmsMost bounds the false alarms of a month, as measured for docs/alerts.md. The budget of
	// the rules is one.
	alarmsMost = 20
)

// rules are the default rules, for one class.
func rules(t *testing.T) alerts.Config {
	c := alerts.Config{Classes: []string{"0", "1"}, Methods: []string{"auto"}}
	for _, when := range []string{"cusum", "change over 24h"} {
		r := alerts.Rule{Name: when, Drift: -1, Classes: alerts.Patterns{"0"}}
		if err := r.ParseWhen(when); err != nil {
			t.Fatal(err)
		}
		c.Rules = append(c.Rules, r)
	}
	return c
}

// quietNetwork is one of 100 communities in which people change sides in pairs, post and are asked,
// and no share moves.
func quietNetwork(days int) simulate.Config {
	n := simulate.DefaultConfig()
	n.Seed, n.Vertices, n.Communities, n.InitialShare = 5, 10_000, 100, 0.95
	n.Activity, n.PostRate, n.LabelRate = 0.02, 0.05, 0.001
	n.Duration = time.Duration(days) * 24 * time.Hour
	n.StepEvery, n.StepEventsMax = emitEvery, 1<<20
	n.Drift, n.JumpEvery, n.Churn = 0, 0, 0.002
	return n
}

// On quiet days hardly an alarm is given: while labels trickle in, when 200 come at once, with every
// new fit, and when another model takes over. GQLSTREAM_ALARM_DAYS says how many days there are; a
// day takes about seven seconds of one core.
func TestQuietDaysGiveHardlyAnAlarm(t *testing.T) {
	days := 0
	if _, err := fmt.Sscan(os.Getenv("GQLSTREAM_ALARM_DAYS"), &days); err != nil || days < 3 {
		t.Skip("a measurement: set GQLSTREAM_ALARM_DAYS to 3 or more")
	}
	n := quietNetwork(days)
	hour := (n.Duration / 24).Truncate(emitEvery)
	report, err := runTrial(t.Context(), trial{
		Network: n, Alerts: rules(t),
		Core: incremental.Config{
			Classes: 2, CompactEvery: time.Hour,
			Communities: []graphstore.Rule{{Name: simulate.Everyone, Kind: graphstore.Everyone}},
			Estimates:   []quant.Options{quant.DefaultOptions()},
			Emit:        incremental.Emit{Threshold: 0.1, AtLeastEvery: 10 * time.Second},
		},
		Act: func(s *simulate.Network) {
			switch s.Elapsed() {
			case 8 * hour, 16 * hour:
				s.Ask(200)
			case 20 * hour:
				s.Retrain("simulated-2", 0.8, 2*time.Hour)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, others := report.judge(0.07, time.Hour)
	for _, a := range others {
		t.Log(a.Time, a.Rule, a.Text)
	}
	t.Logf("%d records, %d alarms in %d days", report.Records, len(others), days)
	if most := max(2, alarmsMost*days/30); len(others) > most {
		t.Errorf("%d alarms, want at most %d", len(others), most)
	}
}

// A community that jumps while all of its members post is found.
func TestJumpIsFound(t *testing.T) {
	n := quietNetwork(1)
	n.Vertices, n.Communities, n.StepEvery, n.Duration = 3000, 5, time.Minute, 90*time.Minute
	n.LabelShare = 0.1
	report, err := runTrial(t.Context(), trial{
		Network: n, Alerts: rules(t), Core: incremental.Config{
			Classes: 2, Emit: incremental.Emit{Threshold: 0.1, AtLeastEvery: 10 * time.Second},
		},
		Act: func(s *simulate.Network) {
			if s.Elapsed() == 75*time.Minute {
				s.Jump(0, 0.3, time.Minute)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	moves, others := report.judge(0.07, 3*time.Minute)
	if len(moves) != 1 || moves[0].Delay < 0 || len(others) > 0 {
		t.Errorf("moves %v, other alarms %v", moves, others)
	}
}
