package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/simulate"
)

// The demo compares two methods: ours, and plain counting of the predictions.
const (
	demoOurs  = "auto"
	demoPlain = "pcc"
)

// jumpWindow is the time after a jump for which a community counts as jumping.
const jumpWindow = 10 * time.Second

// truthsKept bounds the truths that wait for the pipeline to reach their position.
const truthsKept = 1 << 12

// demoTruth is the true state of the network at a position of the stream.
type demoTruth struct {
	position event.Position
	elapsed  time.Duration // simulated
	records  []simulate.TruthRecord
}

// demoRow is one community as the demo shows it. Shares are of class 0.
type demoRow struct {
	name      string
	members   int
	truth     float64
	ours      float64
	low, high float64
	plain     float64
	jumping   bool
	known     bool // there is an estimate of both methods
}

// errorMean is a mean of absolute errors.
type errorMean struct {
	sum float64
	n   int
}

func (m *errorMean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }

func (m errorMean) mean() float64 { return m.sum / float64(max(m.n, 1)) }

// demoScore holds the mean errors over calm and jumping periods.
type demoScore struct {
	ours, plain [2]errorMean // by period
	covered     [2]errorMean // of the classes, how many lie in our interval
}

// The periods of a community.
const (
	calm = iota
	jumping
)

var periodNames = [...]string{calm: "calm", jumping: "after a jump"}

// demoBoard joins what is true with what is published, by position: an estimate at
// position p is held against the newest truth that p contains, so the time that
// the pipeline takes is not counted as an error of the method. A truth is
// scored at most once, with the estimates that stand when the pipeline passes it.
type demoBoard struct {
	truths   []demoTruth                          // that the pipeline has not passed yet, by position
	shown    demoTruth                            // the newest it has passed
	latest   map[string]map[string]quant.Estimate // community, method
	rows     []demoRow
	score    demoScore
	position event.Position // of the pipeline
	warmUp   time.Duration  // simulated time that is not scored
}

func newDemoBoard(warmUp time.Duration) *demoBoard {
	return &demoBoard{latest: map[string]map[string]quant.Estimate{}, warmUp: warmUp}
}

// expect notes what is true when the stream has reached a position.
func (b *demoBoard) expect(truth demoTruth) {
	b.truths = append(b.truths, truth)
	if len(b.truths) > truthsKept {
		b.truths = slices.Delete(b.truths, 0, len(b.truths)-truthsKept)
	}
}

// publish takes estimates over, which are all of one position, and scores the
// truths that the pipeline has passed with them.
func (b *demoBoard) publish(position event.Position, estimates []quant.Estimate) {
	passed := 0
	for passed < len(b.truths) && b.truths[passed].position <= position {
		b.shown = b.truths[passed]
		passed++
	}
	b.truths = slices.Delete(b.truths, 0, passed)
	b.position = position
	for _, e := range estimates {
		if b.latest[e.Community] == nil {
			b.latest[e.Community] = map[string]quant.Estimate{}
		}
		b.latest[e.Community][e.Method] = e
	}
	if passed > 0 {
		b.refresh()
	}
}

// refresh holds the latest estimates against the truth that is shown.
func (b *demoBoard) refresh() {
	b.rows = nil
	for _, truth := range b.shown.records {
		row := demoRow{name: truth.Community, members: truth.Members, truth: truth.Prevalence[0]}
		row.jumping = truth.Jumped != 0 && time.Duration(truth.Time-truth.Jumped) < jumpWindow
		ours, okOurs := b.latest[truth.Community][demoOurs]
		plain, okPlain := b.latest[truth.Community][demoPlain]
		if row.known = okOurs && okPlain && !ours.Suppressed; row.known {
			row.ours, row.plain = ours.Prevalence[0], plain.Prevalence[0]
			row.low, row.high = row.ours, row.ours
			if len(ours.Low) > 0 {
				row.low, row.high = ours.Low[0], ours.High[0]
			}
			if b.shown.elapsed >= b.warmUp {
				b.score.add(row, truth.Prevalence, ours, plain)
			}
		}
		b.rows = append(b.rows, row)
	}
}

func (s *demoScore) add(row demoRow, truth []float64, ours, plain quant.Estimate) {
	period := calm
	if row.jumping {
		period = jumping
	}
	s.ours[period].add(meanAbsolute(ours.Prevalence, truth))
	s.plain[period].add(meanAbsolute(plain.Prevalence, truth))
	for k := range ours.Low {
		hit := 0.0
		if ours.Low[k] <= truth[k] && truth[k] <= ours.High[k] {
			hit = 1
		}
		s.covered[period].add(hit)
	}
}

func meanAbsolute(a, b []float64) float64 {
	sum := 0.0
	for k := range a {
		sum += math.Abs(a[k] - b[k])
	}
	return sum / float64(len(a))
}

// demoFrame is one picture of the demo.
type demoFrame struct {
	elapsed, total time.Duration // simulated; total 0 has no end
	vertices       int
	events         int // applied by the pipeline
	lag            int // messages published and not yet applied
	rows           []demoRow
	score          demoScore
	page           string // address of the page with charts; empty without one
}

// lines lays the frame out: the mean errors so far, then the communities.
func (f demoFrame) lines() []string {
	clock := clockText(f.elapsed)
	if f.total > 0 {
		clock += " of " + clockText(f.total)
	}
	title := "gqlstream demo  " + clock
	if f.page != "" {
		title += "  charts at " + f.page
	}
	lines := []string{title, fmt.Sprintf("%s vertices, %s events, %d messages behind", grouped(f.vertices), grouped(f.events), f.lag), ""}
	lines = append(append(lines, tabled(f.score.write)...), "")
	if len(f.rows) == 0 {
		return lines
	}
	return append(lines, tabled(func(table io.Writer) {
		fmt.Fprintf(table, "share of 0\tmembers\ttruth\tours\t90 %% interval\tplain\n")
		for _, r := range f.rows {
			fmt.Fprintln(table, r.text())
		}
	})...)
}

// text is the row of one community in the table.
func (r demoRow) text() string {
	text := fmt.Sprintf("%s\t%s\t%.3f", r.name, grouped(r.members), r.truth)
	if !r.known {
		return text + "\twaiting"
	}
	text += fmt.Sprintf("\t%.3f\t[%.3f %.3f]\t%.3f", r.ours, r.low, r.high, r.plain)
	if r.jumping {
		text += "\tjumped"
	}
	return text
}

// write writes the mean absolute error by period and method.
func (s demoScore) write(table io.Writer) {
	fmt.Fprintf(table, "mean absolute error\t%s\n", strings.Join(periodNames[:], "\t"))
	for _, row := range []struct {
		name  string
		means [2]errorMean
	}{
		{"  ours (" + demoOurs + ")", s.ours}, {"  plain counting (" + demoPlain + ")", s.plain}, {"  truth in our interval", s.covered},
	} {
		fmt.Fprint(table, row.name)
		for _, m := range row.means {
			if m.n == 0 {
				fmt.Fprint(table, "\t-")
			} else {
				fmt.Fprintf(table, "\t%.4f", m.mean())
			}
		}
		fmt.Fprintln(table)
	}
}

func clockText(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
