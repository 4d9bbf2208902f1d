package sinks

import (
	"encoding/json"
	"fmt"
	"testing"

	"gqlstream/alerts"
)

// transitionsAt are those of two rules, two communities and two classes.
func transitionsAt(position uint64) (out []alerts.Transition) {
	for _, rule := range []string{"a rule", "b"} {
		for _, community := range []string{"x", "y.z"} {
			for _, class := range []string{"left", "right"} {
				out = append(out, alerts.Transition{
					ID: fmt.Sprint(rule, community, class, position), Rule: rule, Community: community, Class: class,
					State: alerts.Firing, Position: position, Reason: "low 0.4; low > 0.3",
				})
			}
		}
	}
	return out
}

// A pipeline that goes over old ground must leave each transition in the stream once
// and in the order of positions, under its rule and community.
func TestAlertsAreStoredOnce(t *testing.T) {
	b := startBroker(t)
	for _, positions := range [][]uint64{{1, 2, 3}, {1, 2, 3, 4}, {3, 4, 5}} { // three processes
		s, err := NewAlerts(b.nc, NATSConfig{Stream: "GQL_ESTIMATES", Log: "log"})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range positions {
			if err := s.Write(t.Context(), transitionsAt(p)); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
	}
	stream, err := b.js.Stream(t.Context(), "GQL_ESTIMATES")
	if err != nil {
		t.Fatal(err)
	}
	n, last := stream.CachedInfo().State.LastSeq, uint64(0)
	seen := map[string]bool{}
	for i := range n {
		m, err := stream.GetMsg(t.Context(), i+1)
		if err != nil {
			t.Fatal(err)
		}
		var x alerts.Transition
		if err := json.Unmarshal(m.Data, &x); err != nil {
			t.Fatal(err)
		}
		if m.Subject != AlertSubject(x.Rule, x.Community) || seen[x.ID] || x.Position < last {
			t.Errorf("message %d on %s: %s after position %d", i+1, m.Subject, m.Data, last)
		}
		seen[x.ID], last = true, x.Position
	}
	if n != 5*8 {
		t.Errorf("%d messages, want 40", n)
	}
	if got := AlertSubject("a rule", "y.z"); got != "gqlest.alert.a=20rule.y=2Ez" {
		t.Errorf("subject %s", got)
	}
}
