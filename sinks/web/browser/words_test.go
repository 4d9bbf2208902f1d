//go:build browser

package browser

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gqlstream/ingest"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
	"gqlstream/sinks/web"
)

// alertAt is the beginning of an alert on the first class.
func alertAt(community string, position uint64) []alerts.Transition {
	x := fires(community, position, alerts.Firing)
	x.Reason = "+10.5 points in 1h, the rule asks for above +10.0 points"
	x.Text = "no of " + community + " is 66.0 % (90 % interval 61.0 % to 71.0 %); " + x.Reason
	return []alerts.Transition{x}
}

// savePicture writes the last saved picture, if the test was asked for pictures.
func (p *page) savePicture(name string) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	text := eval[string](
		p,
		`window.saved.arrayBuffer().then((b) => btoa(String.fromCharCode(...new Uint8Array(b))))`,
	)
	data, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = os.WriteFile(dir+"/"+name+".png", data, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// The list must name the communities that moved within a day, link to them, and sort names
// with numbers in natural order.
func TestMoversAndNaturalOrder(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	for i := range 12 {
		name := fmt.Sprintf("bfs-%d", i+1)
		before, now := one(name, 1, 0.3), one(name, 3601, 0.3+0.01*float64(i))
		before.SE, now.SE = []float64{.01, .01}, []float64{.01, .01}
		put(t, s, before, now)
	}
	s.Status(running(1))
	p := open(t, 1280, 860, "light")
	p.visit(s.URL())
	p.until(
		"five movers",
		`document.querySelectorAll(".movers a").length === 5 && document.querySelector(".movers `+
			`a").innerText.includes("+11.0")`,
	)
	names := eval[string](
		p,
		`[...document.querySelectorAll(".rows .row")].sort((a, b) => a.ariaRowIndex - `+
			`b.ariaRowIndex).map((r) => r.querySelector(".name").innerText).slice(0, 12).join()`,
	)
	want := "bfs-1,bfs-2,bfs-3,bfs-4,bfs-5,bfs-6,bfs-7,bfs-8,bfs-9,bfs-10,bfs-11,bfs-12"
	if names != want {
		t.Errorf("names in order %s", names)
	}
	p.do(click(`document.querySelector(".c-trend button")`))
	p.until(
		"the largest change first",
		`[...document.querySelectorAll(".rows .row")].find((r) => r.ariaRowIndex === `+
			`"2").innerText.startsWith("bfs-12")`,
	)
	p.do(chromedp.Click(chromedp.CSS(".movers a")))
	p.until(
		"the mover",
		`document.querySelector(".detail h1")?.innerText === "bfs-12" && `+
			`document.querySelector(".moved").innerText.includes("+11.0 points")`,
	)
	p.quiet()
}

// Trends that are seen together have one scale: four points must not look like forty.
func TestTrendsShareAScale(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	for i := range uint64(30) {
		put(
			t, s, one("large", i+1, 0.3+0.4*float64(i)/29),
			one("small", i+1, 0.3+0.04*float64(i)/29),
		)
	}
	s.Status(running(1))
	p := open(t, 1280, 860, "light")
	p.visit(s.URL())
	height := func(name string) float64 {
		return eval[float64](p, fmt.Sprintf(`(() => {
			const row = [...document.querySelectorAll(".rows .row")]
				.find((r) => r.querySelector(".name").textContent === %q);
			const y = row.querySelector("polyline").getAttribute("points").split(" ")
				.map((x) => Number(x.split(",")[1]));
			return Math.max(...y) - Math.min(...y);
		})()`, name))
	}
	p.until("the trends", `document.querySelectorAll(".rows polyline[points]").length === 2`)
	if large, small := height("large"), height("small"); large < 9*small || large > 11*small {
		t.Errorf("40 points are %.1f px high and 4 points %.1f", large, small)
	}
	p.quiet()
}

// From the first second a long step must report its task, on every page. A stream without
// events must explain how to fill it.
func TestEmptyAndBusyPipelinesGiveAdvice(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses, NATS: "nats://127.0.0.1:4222"})
	s.Status(web.Status{State: "running"})
	p := open(t, 1000, 800, "light")
	p.visit(s.URL())
	p.until(
		"how to publish",
		`document.querySelector(".communities .note")?.innerText.includes("No events yet") && `+
			`document.querySelector(".note pre").innerText.includes("gqlstream publish --nats `+
			`nats://127.0.0.1:4222")`,
	)
	p.axe()
	p.shot("empty-no-events")
	put(
		t,
		s,
		quant.Estimate{
			Community:  "everyone",
			Method:     "auto",
			Position:   1,
			Suppressed: true,
			Flags:      []string{"below-privacy-floor"},
		},
	)
	p.reports(
		s,
		func(uint64) web.Status { return web.Status{State: "running"} },
		func() bool { // the same next to a community without members
			return eval[bool](
				p,
				rowText("everyone")+`.includes("not published") && `+
					`Boolean(document.querySelector(".hint:not([hidden])")`+
					`?.innerText.includes("No events yet"))`,
			)
		},
	)
	s.Progress("solving community 12 of 160", 0)
	for _, address := range []string{"#/", "#/alerts", "#/pipeline", "#/c/everyone"} {
		p.visit(s.URL() + address)
		p.until(
			"the progress at "+address,
			`document.getElementById("live").innerText.includes("solving community 12 of 160")`,
		)
	}
	p.axe()
	p.shot("progress")
	p.report(
		s,
		func() bool {
			return eval[bool](p,
				`!document.getElementById("live").innerText.includes("solving")`)
		},
	)
	p.visit(s.URL())
	p.until(
		"no hint any more",
		`document.querySelector(".hint")?.hidden && document.querySelectorAll(".rows `+
			`.name[href]").length === 1`,
	)
	p.quiet()
}

// Alerts that cannot fire must say why, name the communities, and link to them. An alert
// that fired must link to its moment.
func TestSilentAlertsSayWhyAndFiredOnesLeadToTheMoment(t *testing.T) {
	before := func(_ context.Context, community, _ string, at time.Time) (quant.Estimate, bool,
		error,
	) {
		return one(
			community,
			uint64(at.Unix()-1_780_000_000),
			0.2,
		), true, nil // memory is thinned there
	}
	s := serve(t, web.Config{
		Classes:   twoClasses,
		Questions: web.Questions{Explain: explained, InForce: before},
	})
	for i := range uint64(1000) {
		share := 0.2
		if i >= 400 {
			share = 0.6
		}
		put(t, s, one("alpha", 60*i+1, share))
	}
	thin := one("gamma", 1, 0.4)
	thin.Flags = []string{"thin:0,1"}
	put(t, s, thin)
	s.Status(running(1))
	s.SetAlerts(
		web.Alerts{
			Rules: []alerts.Counts{
				{
					Rule:       "majority-lost",
					Inactive:   36,
					Suppressed: 27,
					NoData:     9,
					Silent: []alerts.Silence{
						{
							Why:         "thin",
							Alerts:      27,
							Communities: 3,
							Examples:    []string{"gamma", "delta", "epsilon"},
						},
						{
							Why:         alerts.WhyNoData,
							Alerts:      9,
							Communities: 9,
							Examples:    []string{"zeta"},
						},
					},
				},
			},
		},
	)
	s.AddTransitions(alertAt("alpha", 24001))
	p := open(t, 1280, 860, "light")
	p.visit(s.URL() + "#/alerts")
	p.until(
		"what is silent",
		`document.querySelector(".alerts-page")?.innerText.includes("36 of 36 alerts cannot")`,
	)
	p.until(
		"why",
		`document.querySelector(".silent")?.innerText.includes("suppressed by thin in 27 of 36 `+
			`(3 communities): gamma, delta, epsilon") && `+
			`document.querySelector(".silent").innerText.includes("no data in 9 of 36 (9 `+
			`communities): zeta …")`,
	)
	p.until(
		"the change in points",
		`document.querySelector(".alerts-page").innerText.includes("+10.5 points in 1h")`,
	)
	p.axe()
	p.shot("alerts-silent")
	p.do(chromedp.Click(chromedp.CSS(".silent a")))
	p.until(
		"those with the flag",
		`location.hash === "#/?flag=thin" && document.querySelectorAll(".rows `+
			`.name[href]").length === 1`,
	)
	p.visit(s.URL() + "#/alerts")
	p.until("the transition", `document.querySelector('.alerts-page a[href^="#/c/alpha"]')`)
	p.do(chromedp.Click(chromedp.CSS(`.alerts-page a[href^="#/c/alpha"]`)))
	p.until("its part of time", `location.hash.includes("from=") && location.hash.includes("to=")`)
	moment := time.Unix(1_780_000_000+24001, 0).UnixMilli()
	if !eval[bool](
		p,
		fmt.Sprintf(
			`(() => { const q = new URLSearchParams(location.hash.split("?")[1]); const [a, b] `+
				`= [Date.parse(q.get("from")), Date.parse(q.get("to"))]; return a < %d && %d < `+
				`b && b - a < 12 `+
				`* 3600e3; })()`,
			moment,
			moment,
		),
	) {
		t.Errorf("the part of time is %s", eval[string](p, "location.hash"))
	}
	p.until(
		"the card at the alert",
		`document.querySelectorAll(".end output")[0].innerText.includes("20.0 %") && `+
			`document.querySelectorAll(".end output")[1].innerText.includes("60.0 %")`,
	)
	p.axe()
	p.shot("alert-moment")
	p.quiet()
}

// refusedEntries are entries of a quarantine: an event and a whole message.
func refusedEntries(context.Context, string, int) ([]web.QuarantineEntry, error) {
	return []web.QuarantineEntry{
		{
			QuarantineEntry: ingest.QuarantineEntry{
				Sequence: 17,
				Time:     time.Now(),
				Kind:     "label",
				Reason:   "bad-class",
				Detail:   `no class "<b>maybe</b>"`,
				Position: 1204,
				Index:    3,
				Bytes:    44,
			},
			Original: `{"kind":"label","class":"<img src=x onerror=alert(1)>"}`,
		},
		{
			QuarantineEntry: ingest.QuarantineEntry{
				Sequence: 16,
				Time:     time.Now(),
				Kind:     "unknown",
				Reason:   "malformed",
				Detail:   "unexpected end",
				Position: 1201,
				Index:    -1,
				Bytes:    9,
				Retried:  true,
			},
		},
	}, nil
}

// The quarantine shows its entries, with the reason, the original and the commands.
func TestQuarantineShowsEntriesAndCommands(t *testing.T) {
	s := serve(
		t,
		web.Config{
			Classes: twoClasses, NATS: "nats://127.0.0.1:4222",
			Questions: web.Questions{Quarantine: refusedEntries},
		},
	)
	status := running(1)
	status.Refused = map[string]uint64{"bad-class": 1, "malformed": 1}
	s.Status(status)
	for _, width := range []int{1280, 400} {
		p := open(t, width, 860, "light")
		p.visit(s.URL() + "#/pipeline")
		p.until("two entries", `document.querySelectorAll(".entries details").length === 2`)
		p.do(chromedp.Focus(chromedp.CSS(".entries summary")), chromedp.KeyEvent("\r"))
		p.until(
			"the commands",
			`document.querySelector(".entries .command").innerText.includes("gqlstream `+
				`quarantine retry 17 --nats nats://127.0.0.1:4222 --file entry.json")`,
		)
		p.until(
			"the original",
			`document.querySelector(".entries pre").innerText.includes("<img src=x")`,
		)
		p.inert("the quarantine")
		p.fits()
		p.axe()
		p.tallShot(fmt.Sprintf("quarantine-%d", width), width)
		p.quiet()
	}
}

// The share is in large type with its interval, and follows the class that is chosen.
func TestTheShareIsInLargeType(t *testing.T) {
	s := serve(t, web.Config{Classes: fiveClasses})
	put(t, s, shared("alpha", 1, 5, 0.4))
	p := open(t, 400, 860, "dark")
	p.visit(s.URL() + "#/c/alpha")
	p.until(
		"the largest class",
		`document.querySelector(".share")?.innerText === "40.0 %" && `+
			`document.querySelector(".hero").innerText.includes("left") && `+
			`document.querySelector(".range").innerText === "90 % interval 37.0–43.0 %"`,
	)
	if size := eval[float64](p,
		`parseFloat(getComputedStyle(document.querySelector(".share")).fontSize)`); size < 32 {
		t.Errorf("the share is %v px high", size)
	}
	p.do(set(`select[aria-label="Class"]`, "1"))
	p.until(
		"another class",
		`document.querySelector(".share").innerText === "28.8 %" && `+
			`document.querySelector(".of").innerText === "centre-left"`,
	)
	p.fits()
	p.axe()
	p.quiet()
}
