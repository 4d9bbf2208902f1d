package main

import (
	"fmt"
	"io"
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

// summarise writes what the demo came to.
func (f demoFrame) summarise(w io.Writer) error {
	f.page, f.rows = "", nil // the page is gone by now
	return f.report(w)
}

// report writes the frame where there is no terminal.
func (f demoFrame) report(w io.Writer) error {
	_, err := fmt.Fprintln(w, strings.Join(f.lines(), "\n"))
	return err
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
