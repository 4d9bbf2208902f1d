//go:build browser

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gqlstream/alerts"
	"gqlstream/sinks/web"
)

// Everything that a pointer reaches must be reached by Tab, in sight and with a ring
// around it.
func TestKeyboardReachesEverything(t *testing.T) {
	d := newDemo(12, fiveClasses, 15*time.Second)
	s := serve(t, web.Config{Classes: d.classes, Explain: explained, Quarantine: refusedEntries, NATS: "nats://127.0.0.1:4222"})
	d.at = time.Now().Add(-60 * d.step)
	for range 60 {
		write(t, s, d)
	}
	s.Status(d.status())
	s.SetAlerts(web.Alerts{Rules: []alerts.Counts{{Rule: "majority-lost", Inactive: 3, Suppressed: 3, Silent: []alerts.Silence{
		{Why: "thin", Alerts: 3, Communities: 1, Examples: []string{"Lyon cycling"}},
	}}}})
	s.AddTransitions(alertAt("Porto cycling", 5))
	p := open(t, 1280, 860, "light")
	for address, want := range map[string][]string{
		"#/":                          {"Search communities", "Flag", "Method", "Class shown", "CSV", "Berlin", "Community", "Trend", "Members"},
		"#/c/Lyon%20cycling?class=0&": {"Communities", "Class", "Method", "More figures", "centre-left", "Compare", "CSV", "PNG", "1 h", "From–to", "From", "To", "Explain"},
		"#/alerts":                    {"Alerts", "thin", "Lyon cycling", "Porto cycling"},
		"#/pipeline":                  {"Pipeline", "17 · label", "16 · unknown"},
	} {
		p.visit(s.URL() + address)
		p.until("the page", `document.querySelector(".rows .name[href], .detail .u-wrap canvas, .silent a, .entries summary")`)
		p.until("the last that comes", `document.querySelector(".movers a, .why-card:not([hidden]) .ask, .silent a, .entries summary")`)
		var reached []string
		for range 60 {
			p.do(chromedp.KeyEvent(kb.Tab))
			reached = append(reached, eval[string](p, `(() => {
				const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
				if (e === document.body) return "";
				const name = e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText || e.type;
				const ring = style.outlineStyle !== "none" || getComputedStyle(e, "::after").outlineStyle !== "none";
				const seen = box.width > 0 && box.bottom > 0 && box.top < innerHeight;
				return (ring && seen ? "" : "UNSEEN ") + name.slice(0, 40);
			})()`))
		}
		all := strings.Join(reached, "|")
		for _, name := range want {
			if !strings.Contains(all, name) {
				t.Errorf("%s: Tab never reaches %q: %s", address, name, all)
			}
		}
		if strings.Contains(all, "UNSEEN") {
			t.Errorf("%s: the focus is not seen: %s", address, all)
		}
	}
	p.quiet()
}
