package web

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"gqlstream/sinks/alerts"
)

// A reader may silence alerts where the configuration allows it, for a time or until one, and
// nothing that a page of another site can send does it.
func TestAlertsAreSilencedThroughTheAPI(t *testing.T) {
	var note string
	s := serve(t, func(c *Config) {
		c.Note = func(_ context.Context, text string) error { note = text; return nil }
	})
	post := func(body string, headers ...string) int {
		t.Helper()
		note = ""
		code, _, _ := raw(t, s, "POST /api/v1/alerts/silence HTTP/1.1\r\nHost: localhost\r\n"+
			strings.Join(append(headers, "Connection: close"), "\r\n")+
			"\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		return code
	}
	const kind = "Content-Type: application/json"
	code := post(
		`{"rule":"jump","community":"north","for":"2h","by":"anna","why":"a debate"}`,
		kind,
	)
	q, ok := alerts.ParseQuieting(note)
	until, _ := time.Parse(time.RFC3339, q.Until)
	if in := time.Until(until); code != 200 || !ok || q.Rule != "jump" || q.Class != "*" ||
		in < 110*time.Minute || in > 121*time.Minute {
		t.Errorf("code %d, the note is %q", code, note)
	}
	code = post(`{"rule":"*","until":"2027-01-01T00:00:00Z","by":"anna","acknowledge":true}`, kind)
	if q, ok = alerts.ParseQuieting(note); code != 200 || !ok || !q.Acknowledge ||
		q.Community != "*" {
		t.Errorf("code %d, the note is %q", code, note)
	}
	for body, want := range map[string]int{
		`{"rule":"jump","by":"anna"}`:                                        422,
		`{"rule":"jump","for":"2h"}`:                                         422,
		`{"for":"2h","by":"anna"}`:                                           422,
		`{"rule":"jump","for":"soon","by":"anna"}`:                           422,
		`{"rule":"jump","for":"99999h","by":"anna"}`:                         422,
		`{"rule":"jump","for":"2h","until":"2027-01-01T00:00:00Z","by":"a"}`: 422,
		`{"rule":"jump","for":"2h","by":"anna","extra":1}`:                   400,
		`{"rule":"jump","for":"2h","by":"anna","community":null}`:            400,
		`{"rule":"jump","for":"2h","by":"anna","community":""}`:              400,
		`{"rule":"jump","for":"2h","by":"anna","Community":"north"}`:         400,
		`{"rule":"jump","for":"2h","by":"anna"} {}`:                          400,
		`silence`: 400,
	} {
		if code := post(body, kind); code != want || note != "" {
			t.Errorf("%s: code %d, want %d; the note is %q", body, code, want, note)
		}
	}
	const body = `{"rule":"jump","for":"2h","by":"anna"}`
	for _, headers := range [][]string{
		{"Content-Type: text/plain"},
		{kind, "Origin: https://elsewhere.example"},
		{kind, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"},
	} {
		if code := post(body, headers...); code < 400 || note != "" {
			t.Errorf("%v: code %d, the note is %q", headers, code, note)
		}
	}
	s = serve(t, nil)
	if code := post(body, kind); code != 403 {
		t.Errorf("where it is not allowed: code %d", code)
	}
}
