//go:build browser

package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Classes that are bare numbers must read as classes, and the meanings of figures must be
// available without a pointer.
func TestNumberedClassesAndMeaningsReadWell(t *testing.T) {
	s := filled(t, newDemo(20, []string{"0", "1"}, 200*time.Millisecond), 40)
	p := open(t, 400, 860, "light")
	p.visit(s.URL())
	p.until(
		"the head",
		`document.querySelector(".c-share")?.innerText === "class 0" && `+
			`document.querySelector(".legend").innerText.includes("class 1")`,
	)
	p.visit(s.URL() + "#/c/Lyon%20cycling")
	p.until("the figures", `document.querySelectorAll(".figures tbody tr").length === 2`)
	got := eval[string](p, `document.querySelector(".figures tbody").innerText`)
	if got[:7] != "class 0" {
		t.Errorf("the figures begin with %q", got)
	}
	if over := eval[int](p, `(() => { const c = `+
		`document.querySelector(".figures").parentElement; return c.scrollWidth - c.clientWidth;`+
		` })()`); over > 0 {
		t.Errorf("the figures are %d px wider than a phone", over)
	}
	p.do(chromedp.Focus(chromedp.CSS(".meanings summary")), chromedp.KeyEvent(kb.Enter))
	p.until(
		"the meanings",
		`document.querySelector(".meanings").innerText.includes("no part of the interval")`,
	)
	p.fits()
	p.shot("meanings-phone")
	p.quiet()
}
