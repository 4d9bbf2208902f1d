//go:build browser

package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gqlstream/sinks/web"
)

// click clicks every element of a list that JavaScript finds.
func click(list string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](
		`for (const node of [` + list + `].flat()) node.click()`,
	)
}

// focus focuses the first element that a selector finds, even if the page replaces it
// meanwhile.
func focus(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](
		fmt.Sprintf(`document.querySelector(%q).focus()`, selector),
	)
}

// painted counts the pixels of the chart that are in the colour of a class between two
// parts of its width.
func painted(p *page, class int, from, to float64) int {
	p.t.Helper()
	return paintedIn(p, fmt.Sprintf("--k%d", class), from, to)
}

// paintedIn does so for a colour of the style sheet; a pixel is in it where its colour is
// nearly that.
func paintedIn(p *page, colour string, from, to float64) int {
	p.t.Helper()
	return eval[int](p, fmt.Sprintf(`(() => {
		const canvas = document.querySelector(".u-wrap canvas");
			const over = document.querySelector(".u-over");
		const ctx = canvas.getContext("2d"), ratio = devicePixelRatio;
		const probe = document.createElement("i");
		probe.style.color = "var(%s)";
		document.body.append(probe);
		const want = getComputedStyle(probe).color.match(/\d+/g).map(Number);
		probe.remove();
		const left = over.offsetLeft * ratio, width = over.offsetWidth * ratio;
		const a = Math.round(left + %f * width), b = Math.round(left + %f * width);
		const { data } = ctx.getImageData(a, over.offsetTop * ratio,
				 Math.max(1, b - a), over.offsetHeight * ratio);
		let n = 0;
		for (let i = 0; i < data.length; i += 4)
				if (data[i + 3] > 140 &&
					[0, 1, 2].every((c) => Math.abs(data[i + c] - want[c]) < 24)) n++;
		return n;
	})()`, colour, from, to))
}

// A value is in force until the next one: a night without a record is no gap, and the line
// does not slope across it.
func TestAValueIsInForceUntilTheNext(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	second := uint64(0)
	for day := range uint64(3) { // three days of ten minutes with a night of an hour
		for i := range uint64(60) {
			second = day*4200 + 10*i
			put(t, s, one("alpha", 1+second, 0.3+0.1*float64(day)))
		}
	}
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/c/alpha")
	p.until("the chart", `document.querySelector(".u-wrap canvas")`)
	total := float64(second)
	for day := range 2 {
		begin := float64(day) * 4200
		night := painted(p, 0, (begin+700)/total, (begin+4100)/total)
		if most := 3 * 1200; night < 100 || night > most { // two pixels high, with their edges
			t.Errorf("the night after day %d has %d pixels of a line", day, night)
		}
	}
	p.shot("steps")
	for claim, want := range map[string]string{
		`m.table([1, 2].map((at) => ({ at, e: { x: at } })), ` +
			`true, 5, [(e) => e.x])`: "[[1,2,5],[1,2,2]]",
		`m.largestChange([.1, .1, .5, .5, .52, .5].map((x) => ` +
			`({ e: { prevalence: [x] } })), 0)`: "[1,2]",
		`m.largestChange([.1, .1, .5, .5, .9, .5].map((x) => ` +
			`({ e: { prevalence: [x] } })), 0, 2)`: "[1,2]",
		// Only the moved part counts as a change: a revision does not.
		`m.largestChange([0, .4, .02, .1].map((r) => ({ e: { prevalence: [.5], moved: [r === .1 ` +
			`? .1 : 0], revised: [r] } })), 0)`: "[2,3]",
		// The revised line adds later revisions to the published values before them.
		`m.revised([[.5, 0], [.4, -.1], [.6, 0]].map(([x, r]) => ({ e: { prevalence: [x], ` +
			`revised: [r] } }))).map((p) => p.e.prevalence[0])`: "[0.4,0.4,0.6]",
	} {
		if got := eval[string](p, `import("/js/series.js").then((m) => JSON.stringify(`+claim+
			`))`); got != want {
			t.Errorf("%s is %s, want %s", claim, got, want)
		}
	}
	p.quiet("willReadFrequently")
}

// A single estimate is drawn as the value that is in force from then on.
func TestASinglePointIsDrawn(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	put(t, s, one("alpha", 1, 0.5))
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/c/alpha")
	p.until("the chart", `document.querySelector(".u-wrap canvas")`)
	if n := painted(p, 0, 0.55, 0.95); n < 80 {
		t.Errorf("the value has %d pixels", n)
	}
	p.axe()
	p.shot("single")
	p.quiet("willReadFrequently")
}

// Clicking two points must explain the change between them. The address must hold the
// points, and another reader who opens it sees the same explanation. Before that the card
// is about the largest change, or the last alert.
func TestClickedPointsAreExplained(t *testing.T) {
	d := newDemo(6, fiveClasses, 15*time.Second)
	s := serve(t, web.Config{Classes: d.classes, Questions: web.Questions{Explain: explained}})
	d.at = time.Now().Add(-120 * d.step)
	for range 120 {
		write(t, s, d)
	}
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/c/Lyon%20cycling?class=0")
	p.until(
		"the card",
		`document.querySelector(".why-card:not([hidden]) .ask") && `+
			`document.querySelector(".u-wrap canvas")`,
	)
	at := func(share float64) chromedp.Action[chromedp.Void] {
		return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
			const over = document.querySelector(".u-over"), box = over.getBoundingClientRect();
			const to = { bubbles: true, detail: 1,
				clientX: box.left + %f * box.width, clientY: box.top + 50 };
			for (const kind of ["mousedown", "mouseup", "click"])
				over.dispatchEvent(new MouseEvent(kind, to));
		})()`, share))
	}
	p.do(at(0.75))
	p.until(
		"what to do next",
		`document.querySelector(".why-card .quiet").innerText.includes("other point")`,
	)
	p.do(at(0.25))
	p.until("the explanation", `document.querySelectorAll("table.why tbody")[0].rows.length === 7`)
	p.until(
		"the words",
		`document.querySelector(".why-head").innerText.includes("left +6.0 points")`,
	)
	ends := eval[[]int](
		p,
		`[...document.querySelectorAll(".end input")].map((x) => Number(x.value))`,
	)
	if ends[0] < 20 || ends[0] > 40 || ends[1] < 80 || ends[1] > 100 {
		t.Errorf("the ends are points %v of 120, want about 30 and 90", ends)
	}
	p.axe()
	p.shot("clicked")
	address := eval[string](p, "location.href")
	p.visit(address)
	p.until(
		"the same explanation",
		`document.querySelectorAll("table.why tbody")[0]?.rows.length === 7`,
	)
	if again := eval[[]int](p, `[...document.querySelectorAll(".end input")].map((x) => `+
		`Number(x.value))`); again[0] != ends[0] ||
		again[1] != ends[1] {
		t.Errorf("after opening the address: %v, want %v", again, ends)
	}
	p.quiet("willReadFrequently")
}

// The card begins at the largest change of the class shown, and at an alert if there
// was one, although a larger change came later.
func TestWhyBeginsWhereSomethingHappened(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses, Questions: web.Questions{Explain: explained}})
	for i := range uint64(100) {
		share := 0.2
		if i >= 30 {
			share = 0.35
		}
		if i >= 60 {
			share = 0.7
		}
		put(t, s, one("alpha", i+1, share), one("beta", i+1, share))
	}
	s.AddTransitions(alertAt("beta", 31))
	p := open(t, 1200, 900, "light")
	for name, want := range map[string][2]int{"alpha": {59, 60}, "beta": {29, 30}} {
		p.visit(s.URL() + "#/c/" + name)
		p.until(
			"the ends at the change of "+name,
			fmt.Sprintf(
				`[...document.querySelectorAll(".end input")].map((x) => x.value).join() === `+
					`"%d,%d"`,
				want[0],
				want[1],
			),
		)
	}
	p.quiet("willReadFrequently")
}

// The chart draws up to five communities or methods, each in a colour of its own, and
// the address holds them.
func TestFiveLinesAreCompared(t *testing.T) {
	d := newDemo(8, fiveClasses, 15*time.Second)
	s := filled(t, d, 60)
	p := open(t, 1200, 900, "light")
	p.visit(s.URL() + "#/c/Lyon%20cycling?class=2")
	p.until("the chart", `document.querySelector(".u-wrap canvas")`)
	p.do(chromedp.Focus(chromedp.CSS(".chart-right .plain")), chromedp.KeyEvent("\r"))
	p.until("the field", `document.activeElement.type === "text"`)
	for i, name := range []string{"", d.names[2], d.names[3], "nobody"} {
		method := "auto"
		if name == "" {
			method = "pcc"
		}
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
			document.querySelector(".compare-form select").value = %q;
			document.querySelector(".compare-form input").value = %q;
		})()`, method, name)), chromedp.Focus(chromedp.CSS(".compare-form input")),
			chromedp.KeyEvent("\r"))
		p.until(
			"another line",
			fmt.Sprintf(`document.querySelectorAll(".toggle.line").length === %d`, i+2),
		)
	}
	p.until(
		"what is missing",
		`document.querySelectorAll(".toggle.line")[4].innerText.includes("no such community")`,
	)
	p.do(
		chromedp.Evaluate[chromedp.Void](
			`document.querySelector(".compare-form input").value = "a sixth"`,
		),
		chromedp.Focus(chromedp.CSS(".compare-form input")),
		chromedp.KeyEvent("\r"),
	)
	p.until("the bound", `document.querySelector(".compare-form").innerText.includes("At most 5")`)
	address := eval[string](p, "location.href")
	p.visit(address)
	p.until(
		"the same lines",
		`document.querySelectorAll(".toggle.line").length === 5 && `+
			`document.querySelectorAll(".toggle.line")[3].innerText.includes("%")`,
	)
	for slot := range 4 {
		if n := painted(p, slot, 0, 1); n < 30 {
			t.Errorf("line %d has %d pixels", slot, n)
		}
	}
	p.fits()
	p.axe()
	p.shot("compare")
	p.do(click(`document.querySelectorAll(".toggle.line .remove")[3]`))
	p.until("four lines", `document.querySelectorAll(".toggle.line").length === 4`)
	write(t, s, d)
	p.quiet("404", "willReadFrequently")
}

// A chart must be saved as rows and as a picture.
func TestChartIsSaved(t *testing.T) {
	d := newDemo(8, fiveClasses, 15*time.Second)
	s := filled(t, d, 60)
	p := open(t, 1200, 900, "dark")
	p.visit(s.URL() + "#/c/Lyon%20cycling?class=0&with=auto~" + "Porto%20cycling")
	p.until(
		"the chart",
		`document.querySelector(".u-wrap canvas") && `+
			`document.querySelectorAll(".toggle.line").length === 2`,
	)
	p.catchFiles()
	p.do(
		click(
			`[...document.querySelectorAll(".save-form .plain")].filter((b) => b.textContent ` +
				`=== "CSV")`,
		),
	)
	p.until("the rows", `window.saved`)
	text := eval[string](p, `window.saved.text()`)
	if n := eval[int](p, `window.saved.text().then((t) => t.trim().split("\n").length)`); n != 1+
		2*60*5 {
		t.Errorf(
			"%d lines, want a head and five classes of 60 estimates of two communities: %.300s",
			n,
			text,
		)
	}
	if name := eval[string](p, `window.savedAs`); name != "Lyon_cycling.csv" {
		t.Errorf("saved as %q", name)
	}
	p.do(
		chromedp.Evaluate[chromedp.Void](`window.saved = null`),
		click(
			`[...document.querySelectorAll(".save-form .plain")].filter((b) => b.textContent `+
				`=== "PNG")`,
		),
	)
	p.until("the picture", `window.saved?.type === "image/png"`)
	size := eval[[]int](p, `createImageBitmap(window.saved).then((b) => [b.width, b.height])`)
	if size[0] < 900 || size[1] < 340+3*22 {
		t.Errorf("the picture is %v", size)
	}
	p.savePicture("saved-chart")
	p.visit(s.URL() + "#/?q=lyon")
	p.until("rows of the list", `document.querySelectorAll(".rows .name[href]").length === 1`)
	p.catchFiles()
	p.do(click(`document.querySelector(".bar-tools .plain")`))
	p.until("the list", `window.saved`)
	if n := eval[int](p, `window.saved.text().then((t) => t.trim().split("\n").length)`); n != 1+5 {
		t.Errorf("%d lines of the list, want a head and five classes", n)
	}
	p.quiet("willReadFrequently")
}

// catchFiles stores the file that the page saves in window.saved, with its name.
func (p *page) catchFiles() {
	p.do(chromedp.Evaluate[chromedp.Void](`
		window.saved = null;
		const make = URL.createObjectURL;
		URL.createObjectURL = (blob) => { window.saved = blob; return make.call(URL, blob); };
		HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };
	`))
}
