//go:build browser

package browser

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// pastEnd is when a past ends, and pastDays how long it is; day 30 to 37 is missing.
var pastEnd = time.Date(2026, 5, 28, 20, 0, 0, 0, time.UTC)

const pastDays = 90

// past answers like the follower of roll-ups: by hour, or by minute for two days or less.
// It stores the requests.
type past struct {
	mu    sync.Mutex
	asked []sinks.RollupQuery
}

func (h *past) read(_ context.Context, q sinks.RollupQuery) (out sinks.RollupAnswer, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, q)
	start, end, period := pastEnd.AddDate(0, 0, -pastDays), pastEnd, time.Hour
	out.Resolution = "hour"
	if q.From.After(start) {
		start = q.From.Truncate(time.Hour)
	}
	if !q.To.IsZero() && q.To.Before(end) {
		end = q.To
	}
	if end.Sub(start) <= 48*time.Hour {
		period, out.Resolution = time.Minute, "minute"
	}
	for at := start; at.Before(end); at = at.Add(period) {
		day := at.Sub(pastEnd.AddDate(0, 0, -pastDays)).Hours() / 24
		if day >= 30 && day < 37 {
			continue
		}
		share := 0.3 + 0.2*day/pastDays
		out.Rollups = append(out.Rollups, sinks.Rollup{
			Time: at, Until: at.Add(period - time.Second), Position: uint64(at.Unix()), Count: 60,
			Last: []float64{share, 1 - share}, Mean: []float64{share, 1 - share},
			Low: []float64{share - 0.05, 0.95 - share}, High: []float64{share + 0.05, 1.05 - share},
		})
	}
	return out, nil
}

// finest is how short a time was asked about last.
func (h *past) finest() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.asked[len(h.asked)-1]
	return q.To.Sub(q.From)
}

// A chart must reach back as far as the roll-ups. In gaps it must show the value in force, and at
// each note a line. If the user drags over a part, the chart must read that part again at a finer
// resolution. The saved file must hold the points of the chart.
func TestChartsReachMonthsBack(t *testing.T) {
	for _, look := range []struct {
		name, scheme  string
		width, height int
	}{{"light", "light", 1200, 900}, {"phone-dark", "dark", 400, 860}} {
		t.Run(look.name, func(t *testing.T) {
			h := &past{}
			s := serve(t, web.Config{
				Classes: twoClasses, Questions: web.Questions{Rollups: h.read},
			})
			latest := one("alpha", 1, 0.5)
			latest.Position, latest.Time = uint64(pastEnd.Unix()), pastEnd.Format(time.RFC3339)
			put(t, s, latest)
			s.AddNotes(
				[]sinks.Note{
					{
						Position: 7,
						Time:     pastEnd.AddDate(0, 0, -45).Format(time.RFC3339),
						Text:     "debate tonight",
					},
				},
			)
			p := open(t, look.width, look.height, look.scheme)
			p.visit(s.URL() + "#/c/alpha?class=0")
			p.until("the chart", `document.querySelector(".u-wrap canvas")`)
			for day := 5; day < pastDays; day += 10 {
				if n := painted(p, 0, (float64(day)-2)/pastDays,
					(float64(day)+2)/pastDays); day != 35 &&
					n < 5 {
					t.Errorf("about day %d are %d pixels of the line", day, n)
				}
			}
			if n := painted(p, 0, 31.0/pastDays, 36.0/pastDays); n < 5 {
				t.Errorf("the value in force in the week without news has %d pixels", n)
			}
			p.await(
				"the note",
				func() bool { return paintedIn(p, "--text", 44.5/pastDays, 60.0/pastDays) >= 20 },
			)
			p.fits()
			p.axe()
			p.shot("months-" + look.name)
			p.catchFiles()
			p.do(
				click(
					`[...document.querySelectorAll(".save-form .plain")].filter((b) => ` +
						`b.textContent === "CSV")`,
				),
			)
			p.until("the rows", `window.saved`)
			if n := eval[int](p,
				`window.saved.text().then((t) => t.trim().split("\n").length)`); n != 1+
				2*24*(pastDays-7) {
				t.Errorf(
					"%d lines were saved, want a head and two classes of each hour that has data",
					n,
				)
			}
			p.drag(".u-over", 0.69, 0.71)
			p.until(
				"the part in the address",
				`location.hash.includes("from=2026-04-") || `+
					`location.hash.includes("from=2026-05-")`,
			)
			p.until(
				"what the last point says",
				`document.querySelector(".hover").innerText.length > 0`,
			)
			p.await(
				"a finer question",
				func() bool { return h.finest() > 0 && h.finest() <= 48*time.Hour },
			)
			p.shot("months-zoomed-" + look.name)
			p.quiet("willReadFrequently")
			if strings.Contains(p.text(), "No data yet") {
				t.Error("the part has no line")
			}
		})
	}
}
