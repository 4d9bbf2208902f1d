//go:build browser

package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gqlstream/internal/request"
	"gqlstream/quant"
	"gqlstream/sinks/web"
	"gqlstream/sinks/web/webtest"
)

// one is an estimate with a share of class 0 out of two, at a position that is
// also the second of its log time.
func one(community string, position uint64, share float64) quant.Estimate {
	return quant.Estimate{
		Community: community, Position: position, Method: "auto", Members: 50, Coverage: 1,
		ModelVersion: "m1",
		Time:         time.Unix(1_780_000_000+int64(position), 0).UTC().Format(time.RFC3339),
		Prevalence: []float64{
			share,
			1 - share,
		}, Low: []float64{max(0, share-0.05), max(0, 0.95-share)},
		High: []float64{
			min(1, share+0.05),
			min(1, 1.05-share),
		}, SE: []float64{0.03, 0.03}, NEff: []float64{40, 40},
	}
}

func put(t testing.TB, s *web.Server, list ...quant.Estimate) {
	t.Helper()
	publish(t, s, list)
}

func running(step uint64) web.Status {
	return web.Status{
		State: "running", Position: step, End: step, Steps: step, StepSeconds: .001,
		LogTime: new(time.Now()),
		Events:  map[string]uint64{"edge": step},
	}
}

var twoClasses = []string{"no", "yes"}

// rowText is JavaScript for the text of the row of a community.
func rowText(name string) string {
	return fmt.Sprintf(
		`([...document.querySelectorAll(".rows .row")].find((r) => `+
			`r.querySelector(".name").textContent === %q)?.innerText || "")`,
		name,
	)
}

// The list must show records from before it was opened, and new ones.
func TestListShowsNewRecords(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses, Pipeline: "live"})
	put(t, s, one("alpha", 1, 0.25), one("beta", 1, 0.5))
	s.Status(running(1))
	p := open(t, 1200, 800, "light")
	p.visit(s.URL())
	p.until("the first figures", rowText("alpha")+`.includes("25.0 %")`)
	p.until("the connection", `document.getElementById("live").dataset.state === "live"`)
	for i, want := range []string{"31.4 %", "62.8 %"} {
		put(t, s, one("alpha", uint64(i+2), 0.314*float64(i+1)), one("gamma", uint64(i+2), 0.1))
		p.report(
			s,
			func() bool {
				return eval[bool](p, rowText("alpha")+fmt.Sprintf(".includes(%q)",
					want))
			},
		)
	}
	p.until("a new community", rowText("gamma")+`.includes("10.0 %")`)
	if got := eval[string](p, `document.title`); got != "Communities · gqlstream" {
		t.Errorf("title %q", got)
	}
	p.quiet()
}

// report pushes a status until the page has got there: the list reads again when a status
// names new records.
func (p *page) report(s *web.Server, there func() bool) {
	p.t.Helper()
	p.reports(s, running, there)
}

// reports pushes statuses of the caller's, which count from 2, until the page is there: at
// most one a second reaches it.
func (p *page) reports(s *web.Server, status func(step uint64) web.Status, there func() bool) {
	p.t.Helper()
	step := uint64(1)
	p.await("the page to follow", func() bool {
		step++
		s.Status(status(step))
		return there()
	})
}

// A community's page adds each new estimate to its figures and its chart.
func TestDetailShowsNewRecords(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	for i := range uint64(50) {
		put(t, s, one("alpha", i+1, 0.25))
	}
	p := open(t, 1200, 900, "dark")
	p.visit(s.URL() + "#/c/alpha")
	p.until("the figures", `document.querySelector("tbody td")?.textContent === "25.0 %"`)
	p.until("the chart", `document.querySelector(".u-wrap canvas")`)
	p.until("the connection", `document.getElementById("live").dataset.state === "live"`)
	next := one("alpha", 51, 0.9)
	next.ModelVersion, next.Flags = "m2", []string{"thin:1", "ill-conditioned:0~1"}
	put(t, s, next)
	p.until("the new figures", `document.querySelector("tbody td").textContent === "90.0 %"`)
	p.until(
		"the change",
		`document.querySelectorAll("tbody tr:first-child td")[2].textContent.startsWith("+65.0")`,
	)
	p.until(
		"the flags explained",
		`document.querySelectorAll(".flag").length === 2 && `+
			`document.querySelector(".flags").innerText.includes("labels count for the classes `+
			`named")`,
	)
	if got := eval[string](p, `document.querySelector(".flag h2 span").textContent`); got != "yes" {
		t.Errorf("the flag names class %q, want yes", got)
	}
	p.quiet()
}

func TestSearchSortAndDrillDown(t *testing.T) {
	d := newDemo(200, fiveClasses, time.Second)
	s := filled(t, d, 3)
	p := open(t, 1200, 800, "light")
	p.visit(s.URL())
	p.until("rows", `document.querySelectorAll(".rows .name[href]").length > 5`)
	p.do(chromedp.KeyEvent("/"))
	p.until("the search field to have the focus", `document.activeElement.type === "search"`)
	// The driver sends the character by itself, so the field got it in spite of the
	// page: a real key press does not put it there.
	p.do(
		chromedp.Evaluate[chromedp.Void](`document.activeElement.value = ""`),
		chromedp.KeyEvent("lyon c"),
	)
	p.until(
		"the matches",
		`document.querySelector(".summary").textContent === "4 of 200" && `+
			`[...document.querySelectorAll(".rows .name")].every((n) => `+
			`n.textContent.startsWith("Lyon c"))`,
	)
	p.do(
		chromedp.KeyEvent(kb.ArrowDown),
		chromedp.KeyEvent(kb.ArrowDown),
		chromedp.KeyEvent(kb.Enter),
	)
	p.until(
		"the second match",
		`document.querySelector(".detail h1")?.textContent === "Lyon climbing"`,
	)
	p.do(chromedp.NavigateBack())
	p.until(
		"the list with the search kept",
		`document.querySelector("input[type=search]")?.value === "lyon c" && `+
			`document.querySelectorAll(".rows .row").length === 4`,
	)
	p.search("")
	p.until("all of them", `document.querySelector(".summary").textContent === "200"`)
	p.do(click(`document.querySelector(".c-members button")`))
	p.until(
		"the largest first",
		`(() => { const m = [...document.querySelectorAll(".rows .row")].slice(0, 8).map((r) => `+
			`[r.style.transform, r.querySelector(".c-members").textContent.replace(",", `+
			`"")]).map(([, x]) `+
			`=> Number(x)); return m.length === 8 && m.every((x, i) => x > 0 && (i === 0 || m[i `+
			`- 1] >= x));`+
			` })()`,
	)
	if got := eval[string](p,
		`document.querySelector(".c-members").getAttribute("aria-sort")`); got != "descending" {
		t.Errorf("aria-sort is %q", got)
	}
	p.search("no such")
	p.until(
		"a word about no match",
		`document.querySelector(".communities .note").innerText.includes("No community")`,
	)
	p.quiet()
}

// search puts a text into the search field.
func (p *page) search(text string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const field = document.querySelector("input[type=search]");
		field.value = %q;
		field.dispatchEvent(new Event("input"));
	})()`, text)))
}

// Ten thousand rows are as fast as ten: only the visible ones are on the page.
func TestTenThousandRows(t *testing.T) {
	d := newDemo(10_000, twoClasses, time.Second)
	s := filled(t, d, 2)
	p := open(t, 1200, 800, "light")
	p.visit(s.URL())
	p.until("rows", `document.querySelectorAll(".rows .name[href]").length > 5`)
	if got := eval[string](p, `document.querySelector(".summary").textContent`); got != "10,000" {
		t.Errorf("%s communities", got)
	}
	p.do(focus(".rows .name"), chromedp.KeyEvent(kb.End))
	p.until(
		"the last row",
		`document.activeElement.dataset.index === "9999" && document.activeElement.href`,
	)
	p.do(chromedp.KeyEvent(kb.PageUp), chromedp.KeyEvent(kb.ArrowUp))
	p.until("a row above", `Number(document.activeElement.dataset.index) < 9995`)
	p.do(chromedp.KeyEvent(kb.Home))
	p.until(
		"the first row",
		`document.activeElement.dataset.index === "0" && document.activeElement.href`,
	)
	took := eval[float64](p, `(async () => {
		const view = document.querySelector(".viewport");
		const full = () => [...document.querySelectorAll(".rows .row")]
				.every((r) => !r.classList.contains("loading"));
		let longest = 0;
		for (const share of [0.5, 0.1, 0.93, 0.37, 0.71]) {
			const start = performance.now();
			view.scrollTop = share * view.scrollHeight;
			await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
			while (!full()) await new Promise((done) => setTimeout(done, 5));
			longest = Math.max(longest, performance.now() - start);
		}
		return longest;
	})()`)
	t.Logf("the longest jump took %.0f ms", took)
	if rows := eval[int](p, `document.querySelectorAll(".rows .row").length`); rows > 60 {
		t.Errorf("%d rows on the page", rows)
	}
	p.quiet()
}

// A page out of sight asks nothing. One that is seen again, also one that was left and that the
// browser keeps for the way back, is live again.
func TestPagesOutOfSightAskNothing(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	put(t, s, one("alpha", 1, 0.25), one("beta", 1, 0.5))
	p := open(t, 1000, 800, "light")
	const live = `document.getElementById("live").dataset.state === "live"`
	for i := range 3 {
		p.visit(s.URL() + fmt.Sprintf("?%d#/c/alpha", i))
		p.until("the figures", `document.querySelector(".share")?.innerText === "25.0 %"`)
		p.until("the connection", live)
	}
	p.do(
		chromedp.Evaluate[chromedp.Void](`setTimeout(() => history.go(-2), 50)`),
	) // the empty page between is passed over
	p.until(
		"the page as it was left",
		`location.search === "?1" && document.querySelector(".share")?.innerText === "25.0 %"`,
	)
	p.until("the connection again", live)
	seen := func(hidden bool) {
		p.do(
			chromedp.Evaluate[chromedp.Void](
				fmt.Sprintf(
					`Object.defineProperty(document, "hidden", { value: %t, configurable: true `+
						`}); document.dispatchEvent(new Event("visibilitychange"))`,
					hidden,
				),
			),
		)
	}
	const asked = `performance.getEntriesByType("resource").filter((e) => /\/(status|` +
		`estimates)\?/.test(e.name + "?") && !e.name.includes("/communities/")).length`
	seen(true)
	p.until("no asks out of sight", `document.getElementById("live").dataset.state === "paused"`)
	before := eval[int](p, asked)
	time.Sleep(2500 * time.Millisecond) // two asks of a page in sight
	if after := eval[int](p, asked); before == 0 || after != before {
		t.Errorf("%d asks, and %d out of sight", before, after-before)
	}
	put(t, s, one("alpha", 2, 0.5))
	seen(false)
	p.until("the page in sight", live)
	p.until("what came meanwhile", `document.querySelector(".share")?.innerText === "50.0 %"`)
	p.quiet()
}

// After a restart of the server the page must recover by itself, with the data of the new
// server.
func TestPageSurvivesARestart(t *testing.T) {
	config := web.Config{HTTP: web.HTTP{Listen: "127.0.0.1:0"}, Classes: twoClasses}
	log := &webtest.Log{}
	first, err := web.New(answering(config, log))
	if err != nil {
		t.Fatal(err)
	}
	logs.Store(first, log)
	put(t, first, one("alpha", 1, 0.25))
	p := open(t, 1200, 800, "light")
	p.visit(first.URL() + "#/c/alpha")
	p.until("the figures", `document.querySelector("tbody td")?.textContent === "25.0 %"`)
	p.until("the connection", `document.getElementById("live").dataset.state === "live"`)
	config.Listen = first.Addr().String()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	p.until(
		"the loss to be noticed",
		`document.getElementById("live").dataset.state === "connecting"`,
	)
	config.Classes = []string{"down", "up"}
	second := serve(t, config)
	put(t, second, one("alpha", 2, 0.75))
	p.until("the connection again", `document.getElementById("live").dataset.state === "live"`)
	p.until(
		"the new figures and classes",
		`document.querySelector("tbody td")?.textContent === "75.0 %" && `+
			`document.querySelector("tbody th").textContent === "down"`,
	)
	put(t, second, one("alpha", 3, 0.5))
	p.shot("after-restart")
	p.until("live figures", `document.querySelector("tbody td")?.textContent === "50.0 %"`)
	p.quiet(
		"ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET",
		"ERR_EMPTY_RESPONSE",
	)
}

// hostile returns names that would run a script in a careless page. The server's
// own tests have more of them.
func hostile() []string {
	return []string{
		`<script>window.hacked=1</script>`, `<img src=x onerror="window.hacked=1">`,
		`<svg onload="window.hacked=1">`,
		`"><script>window.hacked=1</script>`, `'"><img src=x onerror=window.hacked=1>`,
		`</title><script>window.hacked=1</script>`,
		`<iframe srcdoc="<script>parent.hacked=1</script>">`,
		`<a href="javascript:window.hacked=1">x</a>`, `javascript:window.hacked=1`,
		`<details open ontoggle=window.hacked=1>`, `<input autofocus onfocus=window.hacked=1>`,
		`<style>body{display:none}</style>`,
		`<base href="//evil.example/">`, `<meta http-equiv=refresh content="0;url=//evil.example">`,
		`" onmouseover="window.hacked=1`,
		`{{constructor.constructor('window.hacked=1')()}}`, `${window.hacked=1}`,
		`&lt;script&gt;window.hacked=1&lt;/script&gt;`,
		`\u003cscript\u003ewindow.hacked=1\u003c/script\u003e`, "a\nevent: hello\ndata: {}",
		"a\u2028window.hacked=1//",
		`__proto__`, `constructor`, `../../metrics`, `a/b?c#d%`, "\u202egnp.exe",
		strings.Repeat("W", 256), `<!--`, `]]>`, `%`, `#/pipeline`,
	}
}

// Names, flags, versions and statuses from the stream must be shown and do nothing.
func TestHostileNamesStayInert(t *testing.T) {
	s := serve(t, web.Config{
		Classes: []string{
			`<img src=x onerror="window.hacked=1">`,
			"yes",
		}, Pipeline: `<script>window.hacked=1</script>`,
		Sinks: func() []request.State {
			return []request.State{
				{
					Name:      hostile()[3],
					Condition: request.Retrying,
					Reason:    hostile()[1],
					Follows:   true,
					Behind:    1,
				},
			}
		},
	})
	for _, name := range hostile() {
		e := one(name, 1, 0.5)
		e.ModelVersion, e.Kernel = name, name
		e.Flags = []string{name, "thin:" + name}
		put(t, s, e, one(name, 1, 0.5))
		e.Position, e.ModelVersion = 2, name+"2"
		e.Time = time.Unix(1_780_000_100, 0).UTC().Format(time.RFC3339)
		put(t, s, e)
	}
	status := running(1)
	status.Message, status.State = hostile()[1], "replaying"
	status.Refused = map[string]uint64{hostile()[0]: 1, hostile()[1]: 2}
	status.Stages = []web.Stage{{Name: hostile()[2], Seconds: 1}}
	s.Status(status)
	p := open(t, 1200, 3000, "light")
	p.visit(s.URL())
	p.until(
		"all rows",
		fmt.Sprintf(`document.querySelectorAll(".rows .name[href]").length === %d`, len(hostile())),
	)
	shown := eval[[]string](
		p,
		`[...document.querySelectorAll(".rows .name")].map((n) => n.textContent)`,
	)
	for _, name := range hostile() {
		found := false
		for _, x := range shown {
			found = found || x == name
		}
		if !found {
			t.Errorf("%q is not shown as it is", name)
		}
	}
	p.inert("the list")
	p.fits()
	p.shot("hostile-list")
	for _, name := range hostile() {
		p.do(
			chromedp.Evaluate[chromedp.Void](
				`location.hash = "#/c/" + encodeURIComponent(` + jsString(name) + `)`,
			),
		)
		p.until(
			"the page of "+name,
			`document.querySelector(".detail h1")?.textContent === `+jsString(
				name,
			)+` && document.querySelector("tbody td")?.textContent === "50.0 %"`,
		)
		p.inert(name)
	}
	p.visit(s.URL() + "#/pipeline")
	p.until("the pipeline", `document.querySelectorAll(".masonry tbody tr").length >= 4`)
	p.inert("the pipeline")
	p.quiet()
}

// jsString is a JavaScript string literal.
func jsString(s string) string { return `decodeURIComponent("` + url.PathEscape(s) + `")` }

// inert fails the test if a script ran or an element came out of a string.
func (p *page) inert(where string) {
	p.t.Helper()
	if eval[bool](p, `Boolean(window.hacked) || !location.href.startsWith("http://127.0.0.1")`) {
		p.t.Errorf("%s: a script ran", where)
	}
	if got := eval[[]string](p, `[...document.querySelectorAll("body script, body style, body `+
		`img, body iframe, body base, body meta, body object, body embed, body `+
		`details[ontoggle], main `+
		`a:not([href^='#/'])")].map((e) => e.outerHTML)`); len(got) > 0 {
		p.t.Errorf("%s: elements out of strings: %q", where, got)
	}
	if got := eval[bool](p, `[...document.querySelectorAll("body *")].some((e) => `+
		`[...e.attributes].some((a) => a.name.startsWith("on")))`); got {
		p.t.Errorf("%s: an element has an inline handler", where)
	}
}

func TestThemeIsKept(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	put(t, s, one("alpha", 1, 0.25), one("alpha", 2, 0.3))
	p := open(t, 1000, 800, "dark")
	background := `getComputedStyle(document.body).backgroundColor`
	p.visit(s.URL() + "#/c/alpha")
	p.until("a chart", `document.querySelector(".u-wrap canvas")`)
	if got := eval[string](p, background); got != "rgb(17, 21, 27)" {
		t.Errorf("dark system: background %s", got)
	}
	p.do(chromedp.Click(chromedp.CSS("#theme")))
	if got := eval[string](p, background); got != "rgb(246, 247, 249)" {
		t.Errorf("light chosen: background %s", got)
	}
	p.visit(s.URL())
	if got := eval[string](p, background); got != "rgb(246, 247, 249)" {
		t.Errorf("light kept: background %s", got)
	}
	p.quiet()
}

// A page without data must say so, and not be blank.
func TestEmptyPagesSaySo(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	p := open(t, 1000, 800, "light")
	p.visit(s.URL())
	p.until(
		"a word about no estimates",
		`document.querySelector(".communities .note")?.innerText.includes("No estimates yet")`,
	)
	p.shot("empty-communities")
	p.visit(s.URL() + "#/c/nobody")
	p.until(
		"a word about nobody",
		`document.querySelector(".detail .note")?.innerText.includes("No estimate")`,
	)
	p.visit(s.URL() + "#/pipeline")
	p.until(
		"a word about the state",
		`document.querySelector(".banner")?.innerText.includes("starting")`,
	)
	p.shot("empty-pipeline")
	p.visit(s.URL())
	put(
		t,
		s,
		one("alpha", 1, 0.25),
		quant.Estimate{
			Community:  "tiny",
			Method:     "auto",
			Position:   1,
			Suppressed: true,
			Flags:      []string{"below-privacy-floor"},
		},
	)
	p.report(s, func() bool { return eval[bool](p, rowText("tiny")+`.includes("not published")`) })
	p.visit(s.URL() + "#/c/tiny")
	p.until(
		"why it is suppressed",
		`document.querySelector(".flags")?.innerText.includes("privacy floor")`,
	)
	p.shot("suppressed")
	p.quiet("404")
}
