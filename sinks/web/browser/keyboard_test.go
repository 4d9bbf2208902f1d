//go:build browser

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gqlstream/sinks/alerts"
	"gqlstream/sinks/web"
)

// look is how a page is seen.
type look struct {
	name, scheme string
	width        int
	tab          bool // the keys are tried as well
}

var looks = []look{
	{"light", "light", 1280, true},
	{"dark", "dark", 1280, false},
	{"phone", "light", 400, false},
	{"phone-dark", "dark", 400, true},
}

// states are the states of pages: an address, the elements on it, and the elements that Tab
// must reach on a wide screen.
var states = []struct {
	name, address, there string
	reached              []string
}{
	{
		"list",
		"#/",
		`.movers a`,
		[]string{
			"Search communities",
			"Flag",
			"Method",
			"Class shown",
			"CSV",
			"Berlin",
			"Community",
			"Trend",
			"Members",
		},
	},
	{
		"list-searched",
		"#/?q=lyon&flag=any&sort=change&order=desc",
		`.communities`,
		[]string{"Search communities", "Flag"},
	},
	{
		"community", "#/c/Lyon%20cycling?class=0&", `.why-card:not([hidden]) .ask`,
		[]string{
			"Communities",
			"Class",
			"Method",
			"More figures",
			"centre-left",
			"Compare",
			"Save and share",
			"1 h",
			"From–to",
			"From",
			"To",
			"Explain",
		},
	},
	{
		"compared",
		"#/c/Lyon%20cycling?class=0&with=auto~Porto%20cycling",
		`.detail .u-wrap canvas`,
		[]string{"Compare", "Save and share"},
	},
	{
		"alerts",
		"#/alerts",
		`.silent a`,
		[]string{"Alerts", "thin", "Lyon cycling", "Porto cycling"},
	},
	{
		"pipeline",
		"#/pipeline",
		`.entries summary`,
		[]string{"Pipeline", "17 · label", "16 · unknown"},
	},
	{"charts", "#/charts", `.small-chart svg`, []string{"Class", "Order", "Lyon cycling"}},
	{
		"classifier",
		"#/classifier",
		`.classifier-page .figures td`,
		[]string{"Classifier", "Berlin"},
	},
	{"nowhere", "#/c/nobody", `.detail .note`, []string{"Communities"}},
	{"no-page", "#/none", `main .note, main h1`, []string{"Communities"}},
}

// Every state of a page must fit in light and dark, on a screen and on a phone. Tab alone
// must reach every element, in sight and with a ring around it. With AXE it must be
// accessible.
func TestEveryStateInEveryLook(t *testing.T) {
	d := newDemo(12, fiveClasses, 15*time.Second)
	s := serve(
		t,
		web.Config{
			Classes:   d.classes,
			Questions: web.Questions{Explain: explained, Quarantine: refusedEntries},
			NATS:      "nats://127.0.0.1:4222",
		},
	)
	d.at = time.Now().Add(-60 * d.step)
	for range 60 {
		write(t, s, d)
	}
	s.Status(d.status())
	s.SetAlerts(
		web.Alerts{
			Rules: []alerts.Counts{
				{Rule: "majority-lost", Inactive: 3, Suppressed: 3, Silent: []alerts.Silence{
					{Why: "thin", Alerts: 3, Communities: 1, Examples: []string{"Lyon cycling"}},
				}},
			},
		},
	)
	s.AddTransitions(alertAt("Porto cycling", 5))
	nothing := serve(t, web.Config{Classes: d.classes})
	nothing.Status(web.Status{State: "running"})
	for _, look := range looks {
		t.Run(look.name, func(t *testing.T) {
			p := open(t, look.width, 860, look.scheme)
			for _, state := range states {
				p.visit(s.URL() + state.address)
				p.until(state.name, `document.querySelector("`+state.there+`")`)
				p.fits()
				p.axe()
				p.shot("state-" + state.name + "-" + look.name)
				if !look.tab {
					continue
				}
				all := p.tabThrough()
				for _, name := range state.reached {
					if look.width > 400 && !strings.Contains(all, name) {
						t.Errorf("%s: Tab never reaches %q: %s", state.name, name, all)
					}
				}
				if strings.Contains(all, "UNSEEN") || all == "" {
					t.Errorf("%s: the focus is not seen: %s", state.name, all)
				}
			}
			p.visit(nothing.URL())
			p.until(
				"a word about nothing",
				`document.querySelector(".communities .note")?.innerText.includes("yet")`,
			)
			p.fits()
			p.axe()
			p.shot("state-nothing-" + look.name)
			p.quiet("404")
		})
	}
}

// tabThrough presses Tab until the focus has been round, and returns the focused elements.
func (p *page) tabThrough() string {
	p.t.Helper()
	var reached []string
	for range 60 {
		p.do(chromedp.KeyEvent(kb.Tab))
		name := eval[string](p, `(() => {
			const e = document.activeElement;
		const style = getComputedStyle(e), box = e.getBoundingClientRect();
			if (e === document.body) return "";
			const name = e.getAttribute("aria-label") || e.labels?.[0]?.innerText ||
			e.innerText || e.type;
			const ring = style.outlineStyle !== "none" ||
			getComputedStyle(e, "::after").outlineStyle !== "none";
			const seen = box.width > 0 && box.bottom > 0 && box.top < innerHeight;
			return (ring && seen ? "" : "UNSEEN ") + name.slice(0, 40);
		})()`)
		if reached = append(reached, name); name == "" && len(reached) > 1 {
			break
		}
	}
	return strings.Join(reached, "|")
}
