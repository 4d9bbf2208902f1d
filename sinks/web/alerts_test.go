package web

import (
	"fmt"
	"testing"

	"gqlstream/sinks/alerts"
	"gqlstream/sinks/notify"
)

func transition(n int, community string, state alerts.State) alerts.Transition {
	return alerts.Transition{
		ID: fmt.Sprint(
			"id",
			n,
		), Alert: "a", Pipeline: "p", Rule: "r", Community: community, Class: "yes", Method: "auto",
		State:    state,
		Position: uint64(n), Time: "2026-03-01T12:00:00Z", Since: "2026-03-01T12:00:00Z",
		Reason: "low 0.4; low > 0.3",
		Point:  0.5, Low: 0.4, High: 0.6, Labels: map[string]string{"severity": "page"},
	}
}

// sampleAlerts has every field set.
func sampleAlerts() Alerts {
	return Alerts{
		Active: []alerts.Alert{
			{
				Transition: transition(1, "x", alerts.Firing),
				Now:        "low 0.4",
			}, {Transition: transition(2, "y/z", alerts.Pending), Now: "low 0.5"},
		},
		Rules: []alerts.Counts{
			{
				Rule:       "r",
				Inactive:   4,
				Pending:    1,
				Firing:     1,
				Suppressed: 2,
				NoData:     3,
				Silent: []alerts.Silence{
					{Why: "thin", Alerts: 2, Communities: 1, Examples: []string{"x"}},
				},
			},
		},
		Fired:   map[string]uint64{"r": 7},
		Dropped: 5,
		Targets: []notify.Stats{
			{
				Name:     "webhook/ops",
				Outcomes: map[string]uint64{"delivered": 8, "failed": 2},
				Queue:    6,
				Error:    "no",
			},
		},
	}
}

func TestAlertsAreServedByCommunityAndNewestFirst(t *testing.T) {
	s := serve(t, nil)
	if got := into[alertsAnswer](t, s, "/api/v1/alerts"); got.Active == nil ||
		got.Transitions == nil ||
		got.Firing != 0 {
		t.Errorf("without alerts: %+v", got)
	}
	s.SetAlerts(sampleAlerts())
	for i := range transitionsMax + 10 {
		s.AddTransitions(
			[]alerts.Transition{transition(i, []string{"x", "y/z"}[i%2], alerts.Firing)},
		)
	}
	all := into[alertsAnswer](t, s, "/api/v1/alerts?limit=1000")
	if all.Firing != 1 || all.Pending != 1 || len(all.Active) != 2 ||
		len(all.Transitions) != 1000 ||
		all.Transitions[0].Position != transitionsMax+9 {
		t.Errorf(
			"%d firing, %d pending, %d active, %d transitions, the first at %d", all.Firing,
			all.Pending, len(all.Active), len(all.Transitions), all.Transitions[0].Position,
		)
	}
	one := into[alertsAnswer](t, s, "/api/v1/alerts?community=y%2Fz&limit=3")
	if len(one.Active) != 1 || one.Active[0].Now != "low 0.5" || len(one.Transitions) != 3 ||
		one.Transitions[2].Community != "y/z" {
		t.Errorf("%+v", one)
	}
	if len(s.alertBoard.recent) != transitionsMax {
		t.Errorf("%d transitions are kept", len(s.alertBoard.recent))
	}
}

func TestMetricsShowAlerts(t *testing.T) {
	s := serve(t, nil)
	s.SetAlerts(sampleAlerts())
	got := scrape(t, s)
	for name, want := range map[string]string{
		`gqlstream_alerts{rule="r",state="firing"}`:                                 "1",
		`gqlstream_alerts{rule="r",state="inactive"}`:                               "4",
		`gqlstream_alerts_fired_total{rule="r"}`:                                    "7",
		`gqlstream_alerts_suppressed{rule="r"}`:                                     "2",
		`gqlstream_alerts_no_data{rule="r"}`:                                        "3",
		`gqlstream_alerts_dropped`:                                                  "5",
		`gqlstream_notify_queue{target="webhook/ops"}`:                              "6",
		`gqlstream_notify_attempts_total{outcome="failed",target="webhook/ops"}`:    "2",
		`gqlstream_notify_attempts_total{outcome="delivered",target="webhook/ops"}`: "8",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
