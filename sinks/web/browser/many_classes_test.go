//go:build browser

package browser

import (
	"fmt"
	"math"
	"testing"

	"gqlstream/quant"
	"gqlstream/sinks/web"
)

// manyClasses returns k names that are numbers.
func manyClasses(k int) []string {
	out := make([]string, k)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

// shared is an estimate with a share for the first class; the other classes divide the rest
// unevenly.
func shared(community string, position uint64, k int, first float64) quant.Estimate {
	e := one(community, position, first)
	e.Prevalence, e.Low, e.High, e.SE, e.NEff = nil, nil, nil, nil, nil
	sum := 0.0
	for i := 1; i < k; i++ {
		sum += 1 / float64(i)
	}
	for i := range k {
		share := first
		if i > 0 {
			share = (1 - first) / float64(i) / sum
		}
		e.Prevalence = append(e.Prevalence, share)
		e.Low, e.High = append(e.Low, max(0, share-0.03)), append(e.High, min(1, share+0.03))
		e.SE, e.NEff = append(e.SE, 0.02), append(e.NEff, 40)
	}
	return e
}

// With many classes every part of a bar must be as wide as its share, to half a pixel,
// the small ones together as "other"; and no two classes that are seen may have one
// colour.
func TestBarsAreTheShares(t *testing.T) {
	for _, k := range []int{2, 5, 18, 30, 50} {
		t.Run(fmt.Sprint(k, " classes"), func(t *testing.T) {
			s := serve(t, web.Config{Classes: manyClasses(k)})
			for i, first := range []float64{0.99, 1, 0.905, 0.5, 0.03, 0} {
				put(t, s, shared(fmt.Sprint("c", i), 1, k, first))
			}
			s.Status(running(1))
			p := open(t, 1280, 860, "light")
			p.visit(s.URL())
			p.until("rows", `document.querySelectorAll(".rows .name[href]").length === 6`)
			p.checkBars("the list", 6)
			p.axe()
			p.shot(fmt.Sprintf("classes-%d-list", k))
			p.visit(s.URL() + "#/c/c3")
			p.until(
				"the figures",
				fmt.Sprintf(`document.querySelectorAll(".figures tbody tr").length === %d`, k),
			)
			p.checkBars("the community", 1)
			p.do(
				click(
					`[...document.querySelectorAll(".toggle")].slice(0, 20).filter((b) => ` +
						`b.getAttribute("aria-pressed") === "false")`,
				),
			)
			lines := eval[[]string](
				p,
				`[...document.querySelectorAll(".toggle[aria-pressed=true] i")].map((i) => `+
					`getComputedStyle(i).backgroundColor)`,
			)
			if seen := distinct(lines); len(lines) != min(k, 20) || seen != len(lines) {
				t.Errorf("%d lines have %d colours", len(lines), seen)
			}
			p.tallShot(fmt.Sprintf("classes-%d-detail", k), 1280)
			p.fits()
			p.axe()
			p.quiet()
		})
	}
}

// drawnBar is a bar as drawn: widths in pixels, colours, and the shares of the row.
type drawnBar struct {
	Width  float64
	Parts  []float64
	Labels []string
	Colour []string
	Shares []float64
}

// checkBars holds every bar against the estimates that the API gives.
func (p *page) checkBars(where string, n int) {
	p.t.Helper()
	p.until("the parts to have come to their widths", `document.getAnimations().length === 0`)
	bars := eval[[]drawnBar](p, `(async () => {
		const rows = (await (await fetch("/api/v1/communities?limit=100")).json()).communities;
		return [...document.querySelectorAll(".bar")].map((bar) => {
			const name = bar.closest(".row")?.querySelector(".name").textContent ??
				document.querySelector("h1").textContent;
			const parts = [...bar.children];
			return {
				Width: bar.getBoundingClientRect().width,
				Parts: parts.map((x) => x.getBoundingClientRect().width),
				Labels: parts.map((x) => x.dataset.class),
				Colour: parts.map((x) => getComputedStyle(x).backgroundColor),
				Shares: rows.find((r) => r.name === name).estimate.prevalence,
			};
		});
	})()`)
	if len(bars) != n {
		p.t.Fatalf("%s: %d bars, want %d", where, len(bars), n)
	}
	colours := map[string]string{} // of all bars together: class by colour
	for _, b := range bars {
		other, drawn := 0.0, 0.0
		for i, share := range b.Shares {
			drawn += b.Parts[i]
			if b.Parts[i] == 0 {
				other += share
				if share >= 0.01 && len(b.Shares) <= 20 {
					p.t.Errorf("%s: class %d with a share of %.3f is folded", where, i, share)
				}
				continue
			}
			if off := math.Abs(b.Parts[i] - share*b.Width); off > 0.5 {
				p.t.Errorf(
					"%s: class %d of share %.4f is %.2f px of %.2f, off by %.2f", where, i, share,
					b.Parts[i], b.Width, off,
				)
			}
			if class, ok := colours[b.Colour[i]]; ok && class != b.Labels[i] {
				p.t.Errorf(
					"%s: classes %s and %s are both %s", where, class, b.Labels[i], b.Colour[i],
				)
			}
			colours[b.Colour[i]] = b.Labels[i]
		}
		last := len(b.Parts) - 1
		if off := math.Abs(b.Parts[last] - other*b.Width); off > 0.5 ||
			math.Abs(drawn+b.Parts[last]-b.Width) > 0.5 {
			p.t.Errorf(
				"%s: other is %.2f px, want %.2f; all are %.2f of %.2f", where, b.Parts[last],
				other*b.Width, drawn+b.Parts[last], b.Width,
			)
		}
		if class, ok := colours[b.Colour[last]]; ok && b.Parts[last] > 0 && class != "other" {
			p.t.Errorf("%s: class %s has the colour of other", where, class)
		}
	}
}

func distinct(list []string) int {
	seen := map[string]bool{}
	for _, x := range list {
		seen[x] = true
	}
	return len(seen)
}
