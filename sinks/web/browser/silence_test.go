//go:build browser

package browser

import (
	"context"
	"strings"
	"testing"
	"time"

	"gqlstream/sinks/alerts"
	"gqlstream/sinks/web"
)

// A reader silences the alert of a row with its form, and ends the silence again.
func TestAnAlertIsSilencedOnThePage(t *testing.T) {
	notes := make(chan string, 2)
	s := serve(t, web.Config{
		Pipeline: "opinion", Classes: []string{"left", "right"}, Version: "test",
		Note: func(_ context.Context, text string) error { notes <- text; return nil },
	})
	alert := alerts.Alert{Transition: alerts.Transition{
		Rule: "jump", Community: "north", Class: "left", State: alerts.Firing, Method: "auto",
		Text: "left of north is 70 %",
	}}
	s.SetAlerts(web.Alerts{Active: []alerts.Alert{alert}})
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/alerts")
	p.until("the button", `document.querySelector(".alerts-page tbody button")`)
	p.do(click(`document.querySelector(".alerts-page tbody button")`))
	p.until("the form", `document.querySelector(".silence-form input").value === "jump"`)
	eval[string](
		p,
		`document.querySelector(".silence-form input[aria-label='Your name']").value = "anna"`,
	)
	p.do(click(`document.querySelector(".silence-form button[value=silence]")`))
	want := func(part string) {
		t.Helper()
		select {
		case text := <-notes:
			if !strings.HasPrefix(text, "silence ") || !strings.Contains(text, `"rule":"jump"`) ||
				!strings.Contains(text, part) {
				t.Errorf("the note is %s", text)
			}
		case <-time.After(time.Minute):
			t.Fatal("no note")
		}
	}
	want(`"by":"anna"`)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	s.SetAlerts(web.Alerts{Silences: []alerts.Quieting{{
		Rule: "jump", Community: "north", Class: "left", Until: until, By: "anna",
	}}})
	p.until("the silence", `document.querySelector(".silences li")`)
	p.fits()
	p.shot("silenced")
	p.do(click(`document.querySelector(".silences button")`))
	want(`"community":"north"`)
	p.quiet()
}
