package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"testing"
	"time"

	"gqlstream/sinks/alerts"
)

// postable is postableAlert of Alertmanager's api/v2/openapi.yaml. This test runs without
// an Alertmanager: it checks posted alerts against that shape and against the rules of its
// Alert.Validate.
type postable struct {
	StartsAt     *time.Time        `json:"startsAt"`
	EndsAt       *time.Time        `json:"endsAt"`
	Annotations  map[string]string `json:"annotations"`
	Labels       map[string]string `json:"labels"`
	GeneratorURL string            `json:"generatorURL"`
}

var promLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// alertsOf reads a request as Alertmanager does.
func alertsOf(t *testing.T, r received) []postable {
	t.Helper()
	if r.path != "/am/api/v2/alerts" || r.header.Get("Content-Type") != "application/json" {
		t.Fatalf("path %s, type %s", r.path, r.header.Get("Content-Type"))
	}
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.DisallowUnknownFields()
	var list []postable
	if err := decoder.Decode(&list); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	for _, a := range list {
		if a.StartsAt == nil || a.StartsAt.IsZero() || a.EndsAt == nil ||
			a.EndsAt.Before(*a.StartsAt) ||
			len(a.Labels) == 0 {
			t.Fatalf("not valid: %s", r.body)
		}
		for name, value := range a.Labels {
			if !promLabel.MatchString(name) || value == "" {
				t.Fatalf("label %s=%q", name, value)
			}
		}
	}
	return list
}

func active(n int) alerts.Alert {
	return alerts.Alert{Transition: transition(n, alerts.Firing), Now: "low 0.4"}
}

// A firing alert must be sent again while it fires, with an end in the future, and its end
// must be sent.
func TestFiringAlertsAreSentAgainUntilTheirEnd(t *testing.T) {
	r := listen(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	m, err := openManager(Alertmanager{
		Name: "am", URL: r.URL + "/am/", TokenFile: secretFile(t, "a token of some length"),
	}, "https://gql.example.com/", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	m.resendEvery = 100 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	m.set([]alerts.Alert{active(1)}, nil, time.Now())
	go func() {
		defer close(done)
		m.run(ctx)
	}()
	var first map[string]string
	for range 3 { // the first answer was an error
		got := r.next(t)
		if got.header.Get("Authorization") != "Bearer a token of some length" {
			t.Errorf("authorization %q", got.header.Get("Authorization"))
		}
		list := alertsOf(t, got)
		if len(list) != 1 || !list[0].EndsAt.After(*list[0].StartsAt) ||
			list[0].GeneratorURL != "https://gql.example.com/#/c/x%2Fy" {
			t.Fatalf("%+v", list)
		}
		if first == nil {
			first = list[0].Labels
		}
		if fmt.Sprint(list[0].Labels) != fmt.Sprint(first) || first["alertname"] != "r" ||
			first["severity"] != "page" ||
			first["class"] != "left" {
			t.Errorf("labels %v", list[0].Labels)
		}
	}
	end := transition(2, alerts.Resolved)
	end.End, end.Reason = alerts.EndWindow, "window passed"
	m.set(nil, []alerts.Transition{end}, time.Now())
	for {
		list := alertsOf(t, r.next(t))
		if a := list[0].Annotations; list[0].EndsAt.After(time.Now()) {
			if a["summary"] != "r: story 1" || a["reason"] != "because" || a["end"] != "" {
				t.Errorf("while it fires it is told as %v", a)
			}
		} else if a["summary"] != "r: story 2" || a["end"] != "window-passed" ||
			a["share"] != "50.0 %" || a["interval"] != "40.0 % to 60.0 %" ||
			a["change"] != "+10.0 points since 2026-03-01 12:00:02 UTC" {
			t.Errorf("its end is told as %v", a)
		}
		if len(list) == 1 && !list[0].EndsAt.After(time.Now()) {
			if fmt.Sprint(list[0].Labels) != fmt.Sprint(first) {
				t.Errorf("labels %v at the end, %v before", list[0].Labels, first)
			}
			break
		}
	}
	stop()
	<-done
	if s := m.stats(); s.Outcomes[outcomeFailed] != 1 ||
		s.Outcomes[outcomeDelivered] < 2 { // the last one may have been stopped
		t.Errorf("stats %+v", s)
	}
}

// A webhook that has more to deliver than there is time for at the end must leave some for the
// Alertmanagers.
func TestAlertmanagersGetTheEndDespiteASlowWebhook(t *testing.T) {
	nc, js := broker(t)
	slow := listen(t, func(int, http.ResponseWriter) { time.Sleep(200 * time.Millisecond) })
	r := listen(t, nil)
	targets := start(
		t,
		js,
		Config{
			Webhooks:      []Webhook{{Name: "ops", URL: slow.URL}},
			Alertmanagers: []Alertmanager{{Name: "am", URL: r.URL}},
		},
	)
	for n := range 40 {
		publish(t, nc, transition(n+1, alerts.Firing))
	}
	targets.Set([]alerts.Alert{active(1)}, nil)
	r.next(t)
	targets.Close()
	if len(r.got) != 1 {
		t.Errorf("%d requests at the end, want 1", len(r.got))
	}
}

// A log time apart from the clock, names that are no labels, and many alerts must all make
// valid requests.
func TestAnyAlertMakesAValidRequest(t *testing.T) {
	_, js := broker(t)
	r := listen(t, nil)
	targets := start(t, js, Config{Alertmanagers: []Alertmanager{{Name: "am", URL: r.URL + "/am"}}})
	var list []alerts.Alert
	for i := range batchMax + 1 {
		a := active(i % 50)
		a.Alert, a.Community = fmt.Sprint(i), fmt.Sprintf("c%d\xff\n\"", i)
		switch i % 3 {
		case 0:
			a.Since = "2999-01-01T00:00:00Z"
		case 1:
			a.Since, a.Method = "", ""
		}
		list = append(list, a)
	}
	end := active(3)
	end.Alert, end.Since = "end", "2999-01-01T00:00:00Z"
	targets.managers[0].postings["end"] = posting{end.Transition, time.Now()}
	targets.Set(list, nil)
	if a, b := len(alertsOf(t, r.next(t))), len(alertsOf(t, r.next(t))); a != batchMax || b != 2 {
		t.Errorf("%d and %d alerts in the requests", a, b)
	}
}

func TestEndsAreForgottenAfterAWhile(t *testing.T) {
	m, err := openManager(Alertmanager{Name: "am", URL: "http://x"}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	m.set([]alerts.Alert{active(1)}, nil, now)
	m.set(nil, nil, now)
	if len(m.due(now.Add(resolvedKept))) != 1 || len(m.due(now.Add(resolvedKept+1))) != 0 ||
		len(m.postings) != 0 {
		t.Error("an end is told for too short or too long")
	}
}

// An alert that is in no list any more has ended; an alert that fires again has not.
func TestUnlistedAlertsHaveEnded(t *testing.T) {
	m, err := openManager(Alertmanager{Name: "am", URL: "http://x"}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	firing := func() (n int) {
		for _, p := range m.due(now) {
			if p.EndsAt.After(now) {
				n++
			}
		}
		return n
	}
	for i, step := range []struct {
		do   func()
		want [2]int // firing, and all that is told
	}{
		{func() { m.set([]alerts.Alert{active(1)}, nil, now) }, [2]int{1, 1}},
		{func() { m.set(nil, nil, now) }, [2]int{0, 1}},
		{func() { m.set(nil, nil, now) }, [2]int{0, 1}},
		{func() { m.set([]alerts.Alert{active(3)}, nil, now) }, [2]int{1, 1}},
		{func() { m.set(nil, nil, now) }, [2]int{0, 1}},
	} {
		step.do()
		if got := [2]int{firing(), len(m.due(now))}; got != step.want {
			t.Errorf("after step %d: %v are told, want %v", i, got, step.want)
		}
	}
}
