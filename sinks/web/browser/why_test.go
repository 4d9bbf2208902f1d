//go:build browser

package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gqlstream/quant"
	"gqlstream/sinks/web"
)

// explained answers as a pipeline would: every cause has its part of a change of six
// points, and a little is left.
func explained(_ context.Context, q web.ExplainQuery, _ func(string)) (*quant.Explanation, error) {
	from, to := make([]float64, len(fiveClasses)), make([]float64, len(fiveClasses))
	for k := range from {
		from[k], to[k] = 0.2, 0.2
	}
	to[0], to[1], to[2] = 0.26, 0.17, 0.17
	end := func(position, hour string, shares []float64) quant.ExplanationEnd {
		e := quant.ExplanationEnd{
			Time:        "2026-05-01T" + hour + ":00:00Z",
			Published:   shares,
			Certificate: 0.002,
		}
		fmt.Sscan(position, &e.Position)
		e.Estimate = quant.Estimate{
			Community: q.Community, Method: q.Method, Position: e.Position, Prevalence: shares,
			NEff: shares, Members: 812, Flags: []string{"thin:3"},
		}
		return e
	}
	x := &quant.Explanation{
		Community: q.Community, Method: q.Method, Classes: fiveClasses, States: 64,
		From: end(q.From, "12", from), To: end(q.To, "13", to),
	}
	for i, part := range []float64{0.3, -0.25, 0.1, -0.1, 0.75, 0.199} {
		kind := []string{"joined", "left", "predictions", "model", "labels", "edges"}[i]
		c := quant.Cause{Kind: kind, Changes: 21632, Details: []quant.Detail{
			{What: "between members and others", Count: 18731},
			{What: "between members", Count: 1764},
			{What: "new", Count: 11249},
			{What: "gone", Count: 10383},
		}}
		for k := range from {
			c.Contribution = append(c.Contribution, part*(to[k]-from[k]))
		}
		c.Largest = []quant.Effect{
			{
				Vertex: "<b>someone with a long name</b>",
				Other:  "other-" + strings.Repeat("x", i),
				Effect: c.Contribution,
			},
		}
		x.Causes = append(x.Causes, c)
	}
	x.Settle()
	return x, nil
}

// Where the first estimates of a log rest on no label, nothing has moved since them: neither the
// head of the page nor the two points that are offered for an explanation begin there.
func TestNothingMovesFromAGuess(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses, Questions: web.Questions{Explain: explained}})
	guess := one("alpha", 1, 0.5)
	guess.Flags = []string{quant.FlagNoLabels}
	put(t, s, guess)
	for i, share := range []float64{0.9, 0.91, 0.9, 0.9, 0.89, 0.86, 0.86} {
		put(t, s, one("alpha", uint64(2+i), share))
	}
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/c/alpha")
	p.until("the card", `document.querySelector(".why-card:not([hidden]) .ask")`)
	p.until(
		"the change since the first label",
		`document.querySelector(".moved").textContent.includes("−4.0 points")`,
	)
	p.until(
		"the largest change",
		`document.querySelector(".why-card").innerText.includes("89.0 %") && `+
			`!document.querySelector(".why-card").innerText.includes("50.0 %")`,
	)
}

// Each change on a page must name its time: the head the last day, the line under the chart the
// visible part. The card must start where the alert says that the change began. Revisions must not
// count as news. The card must not propose the warm-up.
func TestChangesOnAPageAgree(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses, Questions: web.Questions{Explain: explained}})
	shares := map[int]float64{0: 0.5, 10: 0.3, 40: 0.42, 41: 0.54, 70: 0.5, 90: 0.52}
	share, before := 0.5, 0.5
	for i := range 100 {
		if x, jumps := shares[i]; jumps {
			share = x
		}
		e := one("alpha", uint64(60*i+1), share)
		if i == 0 {
			e.Flags = []string{quant.FlagNoLabels}
		} else {
			part := share - before
			e.Moved, e.Revised = []float64{part, -part}, []float64{0, 0}
			if i == 10 || i == 70 { // learned
				e.Moved, e.Revised = e.Revised, e.Moved
			}
			e.SEChange = []float64{0.01, 0.01}
		}
		before = share
		put(t, s, e)
	}
	s.Status(running(5941))
	firing := alertAt("alpha", 60*41+1)
	firing[0].Class = twoClasses[0]
	firing[0].From = time.Unix(1_780_000_000+60*38+1, 0).UTC().Format(time.RFC3339)
	s.AddTransitions(firing)
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/c/alpha")
	p.until("news of the day in the head",
		`document.querySelector(".moved")?.textContent.includes("news moved it +26.0 points in ")`)
	p.until("the card at the alert",
		`[...document.querySelectorAll(".end input")].map((x) => x.value).join() === "38,41"`)
	at := func(i int) string {
		return time.Unix(1_780_000_000+int64(60*i+1), 0).UTC().Format(time.RFC3339)
	}
	p.visit(s.URL() + "#/c/alpha?from=" + at(30) + "&to=" + at(60))
	p.until("the change of the part shown", `(() => {
		const text = document.querySelector(".gaps")?.innerText ?? "";
		return text.includes(" from ") && text.includes(" to ") && text.includes("+24.0 points");
	})()`)
	if text := eval[string](p, `document.querySelector(".moved").textContent`); text != "" {
		t.Errorf("the records after the part shown are not there, and the head says %q", text)
	}
	p.quiet()
}

// The card must explain the two chosen points, by keyboard too, name causes without an
// explanation, and fit every width in either scheme with a silent console.
func TestWhyItMoved(t *testing.T) {
	d := newDemo(6, fiveClasses, 15*time.Second)
	s := serve(t, web.Config{
		Pipeline: "opinion", Classes: d.classes, Version: "test",
		Questions: web.Questions{Explain: explained},
	})
	d.at = time.Now().Add(-120 * d.step)
	for range 120 {
		write(t, s, d)
	}
	s.Status(d.status())
	for _, size := range []struct {
		name, scheme string
		width        int
	}{
		{"light", "light", 1280},
		{"dark", "dark", 1280},
		{"phone", "light", 400},
		{"phone-dark", "dark", 400},
	} {
		t.Run(size.name, func(t *testing.T) {
			p := open(t, size.width, 860, size.scheme)
			p.visit(s.URL() + "#/c/Lyon%20cycling?class=0")
			p.until(
				"the card",
				`document.querySelector(".why-card:not([hidden]) .ask") && `+
					`document.querySelector(".u-wrap canvas")`,
			)
			before := eval[int](p, `Number(document.querySelectorAll(".end input")[0].value)`)
			p.do(chromedp.Focus(chromedp.CSS(".end input")), chromedp.KeyEvent(kb.ArrowLeft))
			p.until(
				"an end one point earlier",
				fmt.Sprintf(
					`Number(document.querySelectorAll(".end input")[0].value) === %d`,
					before-1,
				),
			)
			p.do(chromedp.Focus(chromedp.CSS(".ask")), chromedp.KeyEvent(kb.Enter))
			p.until(
				"seven rows",
				`document.querySelectorAll("table.why tbody")[0].rows.length === 7`,
			)
			p.until(
				"the words",
				`document.querySelector(".why-head").innerText.includes("left +6.0 points")`,
			)
			sum := eval[float64](
				p,
				`[...document.querySelectorAll("table.why")[0].tBodies[0].rows].reduce((s, r) `+
					`=> s + Number(r.cells[2].innerText.replace("−", "-")), 0)`,
			)
			if sum < 5.7 || sum > 6.3 {
				t.Errorf("the numbers shown sum to %v, the change is 6.0", sum)
			}
			if eval[bool](p, `Boolean(document.querySelector(".why-card b b, .why-card td b"))`) {
				t.Error("the name of a vertex became markup")
			}
			p.do(
				chromedp.Evaluate[chromedp.Void](
					`document.querySelector(".why-card details").open = true`,
				),
			)
			p.fits()
			p.axe()
			p.tallShot("why-"+size.name, size.width)
			p.quiet()
		})
	}
}

// A refusal must be shown in words, and the page go on.
func TestWhyRefused(t *testing.T) {
	d := newDemo(6, fiveClasses, 15*time.Second)
	s := serve(t, web.Config{
		Pipeline: "opinion", Classes: d.classes, Version: "test",
		Questions: web.Questions{
			Explain: func(
				context.Context, web.ExplainQuery, func(string),
			) (*quant.Explanation, error) {
				return nil,
					&web.Refusal{Code: 409, Message: "the log before position 40 was deleted"}
			},
		},
	})
	write(t, s, d)
	write(t, s, d)
	p := open(t, 1000, 860, "light")
	p.visit(s.URL() + "#/c/Lyon%20cycling")
	p.until("the card", `document.querySelector(".why-card:not([hidden]) .ask")`)
	p.do(chromedp.Click(chromedp.CSS(".ask")))
	p.until(
		"why not",
		`document.querySelector(".why-card .quiet").innerText.includes("position 40 was deleted")`,
	)
	if !eval[bool](
		p,
		`document.querySelector("table.why").hidden && !document.querySelector(".ask").disabled`,
	) {
		t.Error("the page does not go on")
	}
	p.quiet("409")
}
