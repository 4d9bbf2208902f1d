//go:build browser

package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gqlstream/sinks/web"
)

// set puts a value into a field or a choice, as a user would.
func set(selector, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const field = document.querySelector(%q);
		field.value = %q;
		field.dispatchEvent(new Event("input"));
		field.dispatchEvent(new Event("change"));
	})()`, selector, value))
}

// The address must have the state of a list: another reader who opens it sees the same.
func TestListIsInTheAddress(t *testing.T) {
	d := newDemo(200, fiveClasses, time.Second)
	s := filled(t, d, 3)
	p := open(t, 1280, 800, "light")
	p.visit(s.URL())
	p.until("rows", `document.querySelectorAll(".rows .name[href]").length > 5`)
	p.search("lyon")
	p.do(
		set(`select[aria-label="Flag"]`, "thin"), set(`select[aria-label="Class shown"]`, "3"),
		set(`select[aria-label="Method"]`, "auto"),
		click(`document.querySelector(".c-members button")`),
	)
	p.until(
		"the address",
		`location.hash === "#/?q=lyon&flag=thin&method=auto&sort=members&order=desc&class=3"`,
	)
	list := `[...document.querySelectorAll(".rows .row")].sort((a, b) => a.ariaRowIndex - ` +
		`b.ariaRowIndex).map((r) => r.querySelector(".name").innerText).join("|")`
	p.until(
		"rows that match",
		`[...document.querySelectorAll(".rows .row")].every((r) => `+
			`r.innerText.startsWith("Lyon") && r.innerText.includes("few labels"))`,
	)
	before, address := eval[string](p, list), eval[string](p, "location.href")
	if n := strings.Count(before, "|") + 1; n < 2 || n > 15 {
		t.Errorf("%d rows: %s", n, before)
	}
	p.visit(address)
	p.until("the same rows", list+` === `+jsString(before))
	if got := eval[string](p, `[...document.querySelectorAll("input[type=search], .tools `+
		`select")].map((x) => x.value).join()`); got != "lyon,thin,auto,3" {
		t.Errorf("the fields say %s", got)
	}
	p.do(focus(".rows .name[tabindex='0']"), chromedp.KeyEvent(kb.Enter))
	p.until(
		"a community with the class",
		`location.hash.startsWith("#/c/Lyon") && document.querySelector('.tools `+
			`select[aria-label="Class"]')?.value === "3"`,
	)
	p.until(
		"the way back",
		`document.querySelector(".crumb a").getAttribute("href") === "#/?q=lyon&flag=thin&`+
			`method=auto&sort=members&order=desc&class=3"`,
	)
	p.quiet()
}

// The address must have the state of a chart too: method, class, lines, range and zoom.
func TestChartIsInTheAddress(t *testing.T) {
	s := serve(t, web.Config{Classes: fiveClasses})
	for i := range uint64(200) {
		e := shared("alpha", 60*i+1, 5, 0.2+0.001*float64(i))
		plain := e
		plain.Method = "pcc"
		put(t, s, e, plain)
	}
	p := open(t, 1280, 900, "light")
	p.visit(s.URL() + "#/c/alpha")
	p.until("the chart", `document.querySelector(".u-wrap canvas")`)
	p.do(
		set(`select[aria-label="Method"]`, "pcc"),
		set(`select[aria-label="Class"]`, "2"),
		click(`document.querySelectorAll(".toggle")[4]`),
		click(
			`[...document.querySelectorAll(".segments button")].filter((b) => b.innerText === `+
				`"1 h")`,
		),
	)
	p.until(
		"the choices in the address",
		`location.hash.includes("method=pcc") && location.hash.includes("class=2") && `+
			`location.hash.includes("show=") && location.hash.includes("range=3600")`,
	)
	p.until(
		"the hour to be drawn",
		`[...document.querySelectorAll(".segments button")].some((b) => b.innerText === "1 h" &&`+
			` b.getAttribute("aria-pressed") === "true")`,
	)
	// A drag over the middle half of the chart is a zoom.
	p.drag(".u-over", 0.25, 0.75)
	p.until(
		"the zoom in the address",
		`location.hash.includes("from=2026") && location.hash.includes("to=2026") && `+
			`!location.hash.includes("range")`,
	)
	width := eval[float64](
		p,
		`(() => { const q = new URLSearchParams(location.hash.split("?")[1]); return `+
			`(Date.parse(q.get("to")) - Date.parse(q.get("from"))) / 1000; })()`,
	)
	if width < 1600 || width > 2000 {
		t.Errorf("half of an hour is %v s", width)
	}
	p.until("the two fields", `[...document.querySelectorAll(".span input")].every((x) => x.value)`)
	fields := eval[string](
		p,
		`[...document.querySelectorAll(".span input")].map((x) => x.value).join()`,
	)
	address := eval[string](p, "location.href")
	p.visit(address)
	p.until(
		"the same method and class",
		`document.querySelector('select[aria-label="Method"]')?.value === "pcc" && `+
			`document.querySelector('select[aria-label="Class"]').value === "2" && `+
			`document.querySelector(".u-wrap canvas")`,
	)
	p.until("the same address", `location.href === `+jsString(address))
	p.until(
		"the same range",
		`[...document.querySelectorAll(".span input")].map((x) => x.value).join() === `+jsString(
			fields,
		),
	)
	p.shot("zoomed")
	p.do(
		chromedp.Evaluate[chromedp.Void](
			`document.querySelector(".u-over").dispatchEvent(new MouseEvent("dblclick", { ` +
				`bubbles: true }))`,
		),
	)
	p.until("all of it", `!location.hash.includes("from=")`)
	p.quiet()
}

// drag moves the pressed mouse over an element, between two parts of its width.
func (p *page) drag(selector string, from, to float64) {
	p.t.Helper()
	box := eval[[]float64](
		p,
		fmt.Sprintf(
			`(() => { const b = document.querySelector(%q).getBoundingClientRect(); return `+
				`[b.left, b.top, b.width]; })()`,
			selector,
		),
	)
	mouse := func(kind input.DispatchMouseEventType, share float64) chromedp.Action[chromedp.Void] {
		return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: kind, X: box[0] + share*box[2], Y: box[1] + 60, Button: input.MouseButtonLeft,
				ClickCount: 1,
			})
			return err
		})
	}
	p.do(
		mouse("mouseMoved", from), mouse("mousePressed", from), mouse("mouseMoved", (from+to)/2),
		mouse("mouseMoved", to), mouse("mouseReleased", to),
	)
}

// A free range is typed; an end before its beginning is refused.
func TestFreeRange(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	for i := range uint64(200) {
		put(t, s, one("alpha", 3600*i+1, 0.3))
	}
	p := open(t, 400, 900, "light")
	p.visit(s.URL() + "#/c/alpha")
	p.until("the chart", `document.querySelector(".u-wrap canvas")`)
	p.do(click(`[...document.querySelectorAll(".segments button")].at(-1)`))
	local := func(at time.Time) string {
		return eval[string](
			p,
			fmt.Sprintf(
				`(() => { const d = new Date(%d); d.setMinutes(d.getMinutes() - `+
					`d.getTimezoneOffset()); return d.toISOString().slice(0, 19); })()`,
				at.UnixMilli(),
			),
		)
	}
	start := time.Unix(1_780_000_000, 0)
	p.do(
		set(`input[aria-label="From"]`, local(start.Add(24*time.Hour))),
		set(`input[aria-label="To"]`, local(start.Add(48*time.Hour))),
	)
	p.until(
		"the address",
		`/from=2026-05-2\dT\d\d%3A26%3A40Z&to=2026-05-/.test(location.hash) || location.hash`,
	)
	if eval[int](p, `document.querySelectorAll(".u-axis").length`) == 0 {
		t.Error("no chart")
	}
	p.fits()
	p.axe()
	p.shot("free-range-phone")
	before := eval[string](p, "location.hash")
	p.do(set(`input[aria-label="To"]`, local(start)))
	if got := eval[string](p, "location.hash"); got != before ||
		!eval[bool](
			p,
			`document.querySelector('input[aria-label="To"]').validationMessage !== ""`,
		) {
		t.Errorf("an end before its beginning led to %s", got)
	}
	p.quiet()
}

// An address that is none of the page's must be said to be unknown.
func TestUnknownAddressSaysSo(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	put(t, s, one("alpha", 1, 0.5))
	p := open(t, 400, 800, "light")
	for _, address := range []string{"#/nothing", "#/c/", "#/c/%zz", "#nonsense"} {
		p.visit(s.URL() + address)
		p.until(
			"a word about "+address,
			`document.querySelector(".unknown")?.innerText.includes("No such page")`,
		)
	}
	p.fits()
	p.axe()
	p.visit(s.URL() + "#/c/alpha?method=none&class=99&range=x&a=1&b=x&with=bad")
	p.until(
		"a word about the method",
		`document.querySelector(".detail .note")?.innerText.includes("by the method none")`,
	)
	p.visit(s.URL() + "#/c/alpha?class=99&range=x&a=1&b=x&with=bad&from=never&show=8,x")
	p.until(
		"the community all the same",
		`document.querySelector(".share")?.innerText === "50.0 %"`,
	)
	p.quiet()
}
