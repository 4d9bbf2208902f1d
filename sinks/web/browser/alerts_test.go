//go:build browser

package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gqlstream/sinks/alerts"
	"gqlstream/sinks/notify"
	"gqlstream/sinks/web"
)

// fires is a transition of rule "majority-lost" on class "no".
func fires(community string, position uint64, state alerts.State) alerts.Transition {
	at := time.Unix(1_780_000_000+int64(position), 0).UTC().Format(time.RFC3339)
	reason := "the low end of the interval is 61.0 %, the rule asks for above 60.0 %"
	return alerts.Transition{
		ID: community + at, Alert: community, Rule: "majority-lost",
		Community: community, Class: "no", Method: "auto", State: state,
		Position: position, Time: at, Since: at, Point: 0.66, Low: 0.61, High: 0.71,
		Reason: reason,
		Text:   "no of " + community + " is 66.0 % (90 % interval 61.0 % to 71.0 %); " + reason,
	}
}

// The list of alerts must show new alerts and link to the community, and the chart there
// must have their marks. Names from the stream must not become HTML.
func TestAlertsAreListedAndMarked(t *testing.T) {
	const hostile = `<img src=x onerror=alert(1)>`
	s := serve(t, web.Config{Classes: twoClasses, Pipeline: "live"})
	for i := range uint64(60) {
		share := 0.4
		if i > 30 {
			share = 0.66
		}
		put(t, s, one("alpha", i+1, share))
	}
	s.Status(running(60))
	for _, look := range []struct {
		name, theme   string
		width, height int64
	}{{"light", "light", 1200, 900}, {"dark", "dark", 1200, 900}, {"phone", "light", 400, 800}} {
		s.SetAlerts(web.Alerts{Rules: []alerts.Counts{{Rule: "majority-lost", Inactive: 3}}})
		p := open(t, int(look.width), int(look.height), look.theme)
		p.visit(s.URL() + "#/alerts")
		p.until("the empty list", `document.body.innerText.includes("No alert fires.")`)
		s.AddTransitions(
			[]alerts.Transition{
				fires("alpha", 31, alerts.Firing),
				fires("alpha", 32, alerts.Firing),
				fires(hostile, 40, alerts.Firing),
				fires("alpha", 50, alerts.Resolved),
			},
		)
		s.SetAlerts(web.Alerts{
			Active: []alerts.Alert{
				{Transition: fires("alpha", 32, alerts.Firing), Now: "no of alpha is 62.0 %"},
				{Transition: fires(hostile, 40, alerts.Firing), Now: "no is 70.0 %"},
			},
			Rules: []alerts.Counts{{Rule: "majority-lost", Firing: 2, Inactive: 1, NoData: 1}},
			Targets: []notify.Stats{
				{
					Name:     "webhook/ops",
					Outcomes: map[string]uint64{"delivered": 3, "failed": 1},
					Queue:    2,
					Error:    "the answer is 503",
				},
			},
		})
		p.until(
			"the alert",
			`document.querySelector(".alerts-page").innerText.includes("the rule asks for above `+
				`60.0 %")`,
		)
		p.until(
			"the target",
			`document.querySelector(".alerts-page").innerText.includes("the answer is 503")`,
		)
		p.fits()
		p.axe()
		p.until(
			"the community in view",
			`document.querySelector('.alerts-page `+
				`a[href^="#/c/alpha"]').getBoundingClientRect().right <= innerWidth`,
		)
		p.shot("alerts-" + look.name)
		eval[any](p, `(() => {
			const draw = CanvasRenderingContext2D.prototype.fillText;
			window.labels = new Set();
			CanvasRenderingContext2D.prototype.fillText = function (text, x) {
				if (text === "majority-lost") labels.add(Math.round(x));
				return draw.apply(this, arguments);
			};
		})()`)
		p.do(chromedp.Click(`.alerts-page a[href^="#/c/alpha"]`))
		p.until(
			"the banner",
			`document.querySelector(".banner:not([hidden])")`+
				`?.innerText.includes("majority-lost: no of")`,
		)
		p.until("the chart", `document.querySelectorAll(".chart canvas").length > 0`)
		p.until("the marks", `labels.size > 0`)
		eval[any](p, `(labels.clear(), dispatchEvent(new Event("themechange")))`)
		p.until("the marks again", `labels.size > 0`)
		// The two alerts are 18 px apart; the one label may move a bit when a scroll bar comes.
		if n := eval[int](p, `Math.max(...labels) - Math.min(...labels)`); n > 12 {
			t.Errorf("%s: of two alerts side by side both have labels, %d px apart", look.name, n)
		}
		p.fits()
		p.axe()
		p.quiet(
			"404",
		) // no record is as old as the beginning of the chart, which a difference asks for
		p.shot("alert-marks-" + look.name)
	}
}
