package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

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

// Widths of the columns of a row, in characters.
const (
	trackWidthMin = 20
	trackWidthMax = 51
	rowTextWidth  = 57 // all but the track
)

// summarise writes what the demo came to.
func (f demoFrame) summarise(w io.Writer) error {
	f.page = "" // gone by now
	lines := append([]string{f.title(palette{}), f.status(palette{}), ""}, f.score.table(palette{})...)
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// lines lays the frame out; there are at most height of them.
func (f demoFrame) lines(width, height int, p palette) []string {
	track := min(max(width-rowTextWidth, trackWidthMin), trackWidthMax)
	lines := []string{
		f.title(p), f.status(p), "",
		p.dim + fmt.Sprintf("%-11s %8s  %6s  %-14s  %6s  %s", "community", "members", "truth", "ours ± 90 %",
			"plain", "0"+strings.Repeat(" ", max(track-2, 0))+"1") + p.reset,
	}
	rows := f.rows[:min(len(f.rows), max(1, height-len(lines)-len(f.footer(p))-1))]
	for _, row := range rows {
		lines = append(lines, row.line(track, p))
	}
	if hidden := len(f.rows) - len(rows); hidden > 0 {
		lines = append(lines, p.dim+fmt.Sprintf("… and %d more", hidden)+p.reset)
	} else {
		lines = append(lines, "")
	}
	lines = append(lines, f.footer(p)...)
	return lines[:min(len(lines), max(height, 1))]
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
	return fmt.Sprintf("%s%s vertices, %s events, %d messages behind%s",
		p.dim, grouped(f.vertices), grouped(f.events), f.lag, p.reset)
}

// line renders one community: figures, then a track from 0 to 1 with the truth,
// our estimate with its interval, and plain counting.
func (r demoRow) line(track int, p palette) string {
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
	return figures + r.track(track, p)
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
	fmt.Fprintf(&b, "%s\n  events %d behind %d\n", f.title(palette{}), f.events, f.lag)
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
