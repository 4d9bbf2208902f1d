//go:build browser

package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gqlstream/incremental/ask"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
	"gqlstream/sinks/web"
)

// drawnTwice is an answer with a vertex that was labelled before.
func drawnTwice(q ask.Question) (*ask.Answer, error) {
	a := &ask.Answer{
		Position: 12_345, Fresh: q.Count - 1, Offers: []ask.Offer{{
			Community: q.Communities[0],
			Labels:    q.Count, HalfWidth: 0.099,
		}},
		Others: []ask.Offer{{Labels: 10, HalfWidth: 0.21}, {Labels: 200, HalfWidth: 0.049}},
		Advice: []ask.Advice{{Name: "centre", Share: 0.6, Effective: 30, More: 40}},
		When:   []ask.When{{Now: true, Reason: "opinions have moved lately"}},
	}
	before := "centre"
	for i := range q.Count {
		d := ask.Drawn{Vertex: fmt.Sprintf(`u,"%d"`, i), Role: "audit", Pi: 0.125}
		if i == 0 {
			d.Label = &before
		}
		a.Drawn = append(a.Drawn, d)
	}
	return a, nil
}

// The page must show the expected benefit of a budget before it names vertices, and save
// the file that gqlstream ask writes.
func TestMembersToLabelAreShownAndSaved(t *testing.T) {
	d := newDemo(8, fiveClasses, 15*time.Second)
	s := serve(
		t,
		web.Config{
			Pipeline: "opinion", Classes: d.classes, Version: "test",
			Questions: web.Questions{Ask: drawnTwice},
		},
	)
	for range 20 {
		write(t, s, d)
	}
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/c/Lyon%20cycling?class=2")
	p.until("the chart", `document.querySelector(".u-wrap canvas")`)
	p.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const make = URL.createObjectURL;
		URL.createObjectURL = (blob) => {
			blob.text().then((text) => { window.saved = text; });
			return make.call(URL, blob); };
		document.querySelector(".whom").open = true;
		document.querySelector(".whom input").value = "25";
		document.querySelector(".whom form").requestSubmit();
	})()`))
	p.until("the draw", `document.querySelectorAll(".whom tbody tr").length === 10`)
	text := eval[string](p, `document.querySelector(".whom").innerText`)
	for _, want := range []string{
		"± 9.9 points", "with 25 labels", "200 labels: ± 4.9 points",
		"labels of centre", "24 vertices to label", "and 15 more", "--count 25",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the card lacks %q: %s", want, text)
		}
	}
	if strings.Index(text, "± 9.9") > strings.Index(text, "u,") {
		t.Error("vertices come before what they buy")
	}
	p.fits()
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".whom").scrollIntoView()`))
	p.shot("whom")
	p.do(click(`document.querySelector(".drawn button")`))
	p.until("the file", `window.saved`)
	var want strings.Builder
	a, _ := drawnTwice(ask.Question{Communities: []string{"x"}, Count: 25})
	if err := a.WriteCSV(&want); err != nil {
		t.Fatal(err)
	}
	if saved := eval[string](p, "window.saved"); saved != want.String() {
		t.Errorf("saved %q, gqlstream ask writes %q", saved, want.String())
	}
	p.quiet("willReadFrequently")
}

// The compare view must show each difference with the interval that the API answers, to
// another community and to the beginning of the chart.
func TestDifferencesAreShown(t *testing.T) {
	d := newDemo(8, fiveClasses, 15*time.Second)
	s := filled(t, d, 60)
	p := open(t, 1200, 900, "light")
	from := d.at.Add(-10 * time.Minute).UTC().Format("2006-01-02T15:04:05Z")
	p.visit(
		s.URL() + "#/c/Lyon%20cycling?class=2&with=auto~" + url.PathEscape(
			d.names[2],
		) + "&from=" + from,
	)
	p.until("both differences", `document.querySelectorAll(".gaps b").length === 2`)
	text := eval[string](p, `document.querySelector(".gaps").innerText`)
	for _, query := range []string{"other=" + url.QueryEscape(d.names[2]), "at=" + from} {
		r, err := http.Get(s.URL() + "api/v1/communities/Lyon%20cycling/difference?" + query)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			t.Fatal(err)
		}
		var answer struct{ Estimate quant.Estimate }
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		e := answer.Estimate
		points := func(x float64) string {
			return strings.NewReplacer("-", "−", "+0.0", "0.0", "-0.0", "0.0").
				Replace(fmt.Sprintf("%+.1f", 100*x))
		}
		want := fmt.Sprintf(
			"%s points (90 %%: %s to %s)", points(e.Prevalence[2]), points(e.Low[2]),
			points(e.High[2]),
		)
		if !strings.Contains(text, want) {
			t.Errorf("%s: the page lacks %q: %s", query, want, text)
		}
	}
	p.fits()
	p.shot("differences")
	p.quiet("willReadFrequently")
}

// An alert about a difference must link to the first community compared with the second,
// and show the firing alerts there.
func TestAnAlertOfADifferenceShowsBoth(t *testing.T) {
	d := newDemo(8, fiveClasses, 15*time.Second)
	s := filled(t, d, 60)
	name := "difference(Lyon cycling, " + d.names[2] + ")"
	reason := "the rule asks for above +5.0 points"
	s.SetAlerts(web.Alerts{Active: []alerts.Alert{{Transition: alerts.Transition{
		Rule: "apart", Community: name, Class: "centre", State: alerts.Firing, Method: "auto",
		Point: 0.1, Low: 0.05, High: 0.15, Reason: reason,
		Text: "centre of " + name +
			" is +10.0 points (90 % interval +5.0 points to +15.0 points); " +
			reason,
	}}}})
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/alerts")
	p.until("the alert", `document.querySelector(".alerts-page tbody a")`)
	if text := eval[string](p,
		`document.querySelector(".alerts-page tbody").innerText`); !strings.Contains(
		text,
		"+10.0 points (90 % interval +5.0 points to +15.0 points)",
	) {
		t.Errorf("the row says %s", text)
	}
	p.do(click(`document.querySelector(".alerts-page tbody a")`))
	p.until("the difference", `document.querySelectorAll(".gaps b").length === 1`)
	p.until("the banner", `document.querySelector(".banner").innerText.includes("apart: ")`)
	p.shot("difference-alert")
	p.quiet("willReadFrequently")
}
