//go:build browser

package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gqlstream/internal/request"
	"gqlstream/sinks/alerts"
	"gqlstream/sinks/web"
)

// The headline with the server's own state must be on every page: a full disk is not
// "live".
func TestTheHeadlineIsOnEveryPage(t *testing.T) {
	full := []request.State{{
		Name: "GQL", Condition: request.Holding, Since: time.Now(),
		Reason: "no space left on device",
	}}
	s := serve(t, web.Config{Classes: twoClasses, Sinks: func() []request.State { return full }})
	put(t, s, one("alpha", 1, 0.5))
	p := open(t, 1200, 900, "light")
	for _, address := range []string{
		"#/", "#/charts", "#/alerts", "#/classifier", "#/pipeline",
		"#/c/alpha",
	} {
		p.visit(s.URL() + address)
		p.until(
			"the sentence at "+address,
			`document.getElementById("live").dataset.level === "bad" &&
			document.getElementById("live").innerText.includes("no space left on device")`,
		)
		p.axe()
	}
	p.shot("headline")
}

// With the keyboard alone a reader can move along a chart, zoom into it and pick the points
// to explain.
func TestTheKeyboardWorksInAChart(t *testing.T) {
	d := newDemo(6, fiveClasses, 15*time.Second)
	s := serve(t, web.Config{Classes: d.classes, Questions: web.Questions{Explain: explained}})
	d.at = time.Now().Add(-120 * d.step)
	for range 120 {
		write(t, s, d)
	}
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/c/Lyon%20cycling?class=0")
	p.until("the chart", `document.querySelector(".plot .u-wrap canvas")`)
	p.do(focus(".plot .chart"), chromedp.KeyEvent(kb.Home))
	p.until("the first estimate", `document.querySelector(".plot .sr").innerText.includes("%")`)
	first := eval[string](p, `document.querySelector(".plot .sr").innerText`)
	p.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter),
		chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.Enter))
	p.until("the explanation", `document.querySelector(".why-head:not([hidden])")`)
	if last := eval[string](p, `document.querySelector(".plot .sr").innerText`); last == first {
		t.Errorf("the keys do not move: %s", last)
	}
	p.do(focus(".plot .chart"), chromedp.KeyEvent("+"))
	p.until("a part of time", `location.hash.includes("from=")`)
	p.axe()
}

// An embedded chart must show the state of its address, on a page of its own that fits its
// frame.
func TestAChartIsEmbedded(t *testing.T) {
	s := serve(t, web.Config{
		HTTP: web.HTTP{Public: []string{"alpha"}}, Classes: twoClasses,
		Display: alerts.Display{
			Communities: map[string]string{"alpha": "Northern towns"},
			Classes:     map[string]string{twoClasses[1]: "in favour"},
		},
	})
	for i := range uint64(30) {
		put(t, s, one("alpha", 1+10*i, 0.3+0.01*float64(i)))
	}
	p := open(t, 640, 400, "light")
	p.visit(s.URL() + "embed/alpha?class=1&note=Preliminary&colors=ff0000")
	p.until("the chart", `document.querySelector("main > svg")`)
	text := `document.querySelector("main > svg")?.textContent`
	for _, words := range []string{
		"Northern towns", "90 % interval", "Preliminary", "Source: ",
		"Times: ",
	} {
		p.until(words, text+`?.includes("`+words+`")`)
	}
	p.until("its own colour", `document.querySelector('path[stroke="#ff0000"]')`)
	p.until("no scroll bar", `document.documentElement.scrollHeight <= innerHeight`)
	p.axe()
	p.shot("embed")
	p.visit(s.URL() + "embed/alpha?class=" + twoClasses[0])
	p.until("a class by its name in the log", text+`?.includes("`+twoClasses[0]+` ") && !`+
		text+`.includes("in favour")`)
	p.visit(s.URL() + "embed/alpha?theme=dark&title=What%20they%20think")
	p.until("its own title", text+`?.includes("What they think")`)
	p.shot("embed-dark")
	p.quiet()
}

// The classifier page must show the confusion of classes: over all labels, of the chosen
// community, and over time. The choice must stay when the page loads again.
func TestTheClassifierPageShowsConfusion(t *testing.T) {
	for _, classes := range [][]string{fiveClasses, manyClasses(12)} {
		d := newDemo(15, classes, 15*time.Second)
		s := serve(t, web.Config{Classes: d.classes})
		d.at = time.Now().Add(-time.Minute)
		write(t, s, d)
		status := d.status()
		status.Models = []web.Model{{Version: "bert-1", Classes: []web.ModelClass{
			{Class: classes[0], Judged: 97, Accuracy: 0.93, Brier: 0.2},
		}}}
		s.Status(status)
		p := open(t, 1200, 900, "light")
		p.visit(s.URL() + "#/classifier")
		text := `document.querySelector(".classifier-page")?.innerText`
		p.until("the confusion", text+`?.includes("Over time")`)
		for _, words := range []string{
			"Which class does it take for which?", "version bert-1", "By community", "Over time",
			" taken for ", "1 Mar 2026",
		} {
			p.until(words, text+`?.includes("`+words+`")`)
		}
		p.do(chromedp.SetValue(`select[aria-label="Labels of"]`, d.names[3]))
		eval[bool](p, `document.querySelector('select[aria-label="Labels of"]')
			.dispatchEvent(new Event("change"))`)
		chosen := `document.querySelector(".confusion").innerText.includes("15.9 %")`
		p.until("the community's own", chosen) // 7 wrong of 44
		eval[bool](p, `!window.dispatchEvent(new Event("focus"))`)
		p.until("the choice to stay",
			`document.querySelector('select[aria-label="Labels of"]').value === "`+d.names[3]+`"`)
		p.axe()
		p.tallShot(fmt.Sprintf("confusion-%d", len(classes)), 1200)
		p.quiet()
	}
}
