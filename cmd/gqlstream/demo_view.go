package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// demoFrame is one picture of the demo.
type demoFrame struct {
	elapsed, total time.Duration // simulated; total 0 has no end
	vertices       int
	events         int     // applied by the pipeline
	rate           float64 // of them a second of wall time
	lag            int     // messages published and not yet applied
	rows           []demoRow
	score          demoScore
	page           string // address of the page with charts; empty without one
}

// palette holds the escape sequences of the view, or nothing where colour is not
// wanted.
type palette struct{ bold, dim, ours, plain, truth, alarm, reset string }

var colours = palette{
	bold: "\x1b[1m", dim: "\x1b[2m", ours: "\x1b[36m", plain: "\x1b[33m", truth: "\x1b[1m",
	alarm: "\x1b[31m", reset: "\x1b[0m",
}

// Widths of the columns of a row, in characters.
const (
	trackWidthMin = 20
	trackWidthMax = 51
	rowTextWidth  = 57 // all but track and trend
	trendGap      = 2
)

// show paints the frame on a terminal, or reports it elsewhere.
func (f demoFrame) show(w io.Writer) error {
	width, height, terminal := terminalSize(w)
	if !terminal {
		return f.report(w)
	}
	p := colours
	if os.Getenv("NO_COLOR") != "" {
		p = palette{}
	}
	return f.paint(w, width, height, p)
}

// summarise writes what the demo came to.
func (f demoFrame) summarise(w io.Writer) error {
	f.page = "" // gone by now
	lines := append([]string{f.title(palette{}), f.status(palette{}), ""}, f.score.table(palette{})...)
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// paint writes the frame over the whole terminal of the given size.
func (f demoFrame) paint(w io.Writer, width, height int, p palette) error {
	return paintScreen(w, f.lines(width, height, p))
}

// lines lays the frame out; there are at most height of them.
func (f demoFrame) lines(width, height int, p palette) []string {
	track, trend := trackWidths(width)
	lines := []string{
		f.title(p), f.status(p), "",
		p.dim + fmt.Sprintf("%-11s %8s  %6s  %-14s  %6s  %s", "community", "members", "truth", "ours ± 90 %",
			"plain", "0"+strings.Repeat(" ", max(track-2, 0))+"1") + p.reset,
	}
	rows := f.shown(max(1, height-len(lines)-len(f.footer(p))-1))
	for _, row := range rows {
		lines = append(lines, row.line(track, trend, p))
	}
	if hidden := len(f.rows) - len(rows); hidden > 0 {
		lines = append(lines, p.dim+fmt.Sprintf("… and %d more", hidden)+p.reset)
	} else {
		lines = append(lines, "")
	}
	lines = append(lines, f.footer(p)...)
	return lines[:min(len(lines), max(height, 1))]
}

func trackWidths(width int) (track, trend int) {
	track = min(max(width-rowTextWidth, trackWidthMin), trackWidthMax)
	if width-rowTextWidth-track >= historyKept+trendGap {
		trend = historyKept
	}
	return track, trend
}

func (f demoFrame) title(p palette) string {
	clock := clockText(f.elapsed)
	if f.total > 0 {
		clock += " of " + clockText(f.total)
	}
	title := p.bold + "gqlstream demo" + p.reset + "  " + clock
	if f.page != "" {
		title += "  charts at " + f.page
	}
	return title
}

func (f demoFrame) status(p palette) string {
	return fmt.Sprintf("%s%s vertices, %s events, %s a second, %d messages behind%s",
		p.dim, grouped(f.vertices), grouped(f.events), grouped(int(f.rate)), f.lag, p.reset)
}

// shown returns at most n rows: the largest communities, in their order.
func (f demoFrame) shown(n int) []demoRow {
	if len(f.rows) <= n {
		return f.rows
	}
	order := make([]int, len(f.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(f.rows[j].members, f.rows[i].members) })
	order = order[:n]
	slices.Sort(order)
	rows := make([]demoRow, n)
	for i, at := range order {
		rows[i] = f.rows[at]
	}
	return rows
}

// line renders one community: figures, then a track from 0 to 1 with the truth,
// our estimate with its interval, and plain counting, then the trend of ours.
func (r demoRow) line(track, trend int, p palette) string {
	name := fmt.Sprintf("%-11.11s", r.name)
	if r.jumping {
		name = p.alarm + name + p.reset
	}
	figures := fmt.Sprintf("%s %8s  %s%6.3f%s", name, grouped(r.members), p.truth, r.truth, p.reset)
	if !r.known {
		return figures + "  " + p.dim + "waiting" + p.reset
	}
	figures += fmt.Sprintf("  %s%6.3f%s ±%-6.3f  %s%6.3f%s  ", p.ours, r.ours, p.reset, (r.high-r.low)/2,
		p.plain, r.plain, p.reset)
	line := figures + r.track(track, p)
	if trend > 0 {
		line += strings.Repeat(" ", trendGap) + p.ours + sparkline(r.history) + p.reset
	}
	return line
}

// track draws the row's shares on a line of the given width from 0 to 1.
func (r demoRow) track(width int, p palette) string {
	at := func(share float64) int {
		return min(max(int(math.Round(share*float64(width-1))), 0), width-1)
	}
	cells := make([]string, width)
	for i := range cells {
		switch {
		case i >= at(r.low) && i <= at(r.high):
			cells[i] = p.ours + "━" + p.reset
		default:
			cells[i] = p.dim + "·" + p.reset
		}
	}
	cells[at(r.plain)] = p.plain + "○" + p.reset
	cells[at(r.ours)] = p.ours + "●" + p.reset
	cells[at(r.truth)] = p.truth + "┃" + p.reset
	return strings.Join(cells, "")
}

// sparkline draws shares between 0 and 1 as blocks of eight heights.
func sparkline(shares []float64) string {
	const blocks = "▁▂▃▄▅▆▇█"
	var b strings.Builder
	for _, x := range shares {
		level := min(max(int(x*8), 0), 7)
		b.WriteString(blocks[3*level : 3*level+3])
	}
	return b.String()
}

// footer is the legend and the running errors.
func (f demoFrame) footer(p palette) []string {
	lines := []string{
		fmt.Sprintf("%s┃%s truth  %s━●━%s ours (%s), 90 %% interval  %s○%s plain counting (%s)  %sred%s: jumped",
			p.truth, p.reset, p.ours, p.reset, demoOurs, p.plain, p.reset, demoPlain, p.alarm, p.reset),
		"",
	}
	return append(lines, f.score.table(p)...)
}

// table is the summary: mean absolute error by period and method.
func (s demoScore) table(p palette) []string {
	lines := []string{p.bold + fmt.Sprintf("%-24s", "mean absolute error")}
	for _, name := range periodNames {
		lines[0] += fmt.Sprintf("%14s", name)
	}
	lines[0] += p.reset
	row := func(colour, name, format string, means [2]errorMean) {
		line := colour + fmt.Sprintf("  %-22s", name) + p.reset
		for _, m := range means {
			text := "-"
			if m.n > 0 {
				text = fmt.Sprintf(format, m.mean())
			}
			line += fmt.Sprintf("%14s", text)
		}
		lines = append(lines, line)
	}
	row(p.ours, "ours ("+demoOurs+")", "%.4f", s.ours)
	row(p.plain, "plain counting ("+demoPlain+")", "%.4f", s.plain)
	row("", "truth in our interval", "%.3f", s.covered)
	return lines
}

// report writes the frame as plain lines, for what is not a terminal.
func (f demoFrame) report(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  events %d rate %.0f behind %d\n", f.title(palette{}), f.events, f.rate, f.lag)
	for _, r := range f.rows {
		if r.known {
			fmt.Fprintf(&b, "  %s members %d truth %.3f ours %.3f [%.3f %.3f] plain %.3f%s\n",
				r.name, r.members, r.truth, r.ours, r.low, r.high, r.plain, jumpMark(r.jumping))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func jumpMark(jumping bool) string {
	if jumping {
		return " jumped"
	}
	return ""
}

func clockText(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
