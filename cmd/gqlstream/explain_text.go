package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"gqlstream/quant"
)

// causeWords are the causes as people call them.
var causeWords = map[string]string{
	quant.CauseJoined:      "members joined",
	quant.CauseLeft:        "members left",
	quant.CausePredictions: "predictions",
	quant.CauseModel:       "model version",
	quant.CauseLabels:      "labels",
	quant.CauseEdges:       "edges",

	quant.CauseCoefficients: "coefficients",
	quant.CauseGamma:        "gamma",
}

// writeExplanation writes an explanation for people: shares in percent, changes in
// percentage points.
func writeExplanation(w io.Writer, x *quant.Explanation) error {
	shown := mostMoved(x.Change, classesShown)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s by %s, position %d (%s) to %d (%s)\n\n", x.Community, x.Method,
		x.From.Position, cmp.Or(x.From.Time, "-"), x.To.Position, cmp.Or(x.To.Time, "-"))
	row := func(head string, values []float64, format, tail string) {
		fmt.Fprint(t, head)
		for _, k := range shown {
			fmt.Fprintf(t, "\t"+format, rounded(100*values[k], 2))
		}
		fmt.Fprintf(t, "\t%s\n", tail)
	}
	for _, k := range shown {
		fmt.Fprintf(t, "\t%s", x.Classes[k])
	}
	fmt.Fprintln(t, "\t")
	row("from", x.From.Shares(), "%.2f %%", endText(&x.From))
	row("to", x.To.Shares(), "%.2f %%", endText(&x.To))
	row("change", x.Change, "%+.2f", "percentage points")
	fmt.Fprintln(t)
	for _, c := range x.Causes {
		row(causeWords[c.Kind], c.Contribution, "%+.2f", detailText(&c))
	}
	row("numerical", x.Numerical, "%+.2f", numericalText(x))
	if n := len(x.Change) - len(shown); n > 0 {
		fmt.Fprintf(t, "\n%d other classes moved less; --format json has all.\n", n)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return writeLargest(w, x, shown)
}

// rounded returns x to so many digits, and no negative zero.
func rounded(x float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(x*unit)/unit + 0
}

// mostMoved returns the classes to show, in order: those that moved most, at most so many.
func mostMoved(change []float64, most int) []int {
	order := make([]int, len(change))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(change[b]), math.Abs(change[a]))
	})
	order = order[:min(len(order), most)]
	slices.Sort(order)
	return order
}

func endText(e *quant.ExplanationEnd) string {
	text := fmt.Sprintf("%g members", e.Estimate.Members)
	if e.Published == nil {
		text += ", estimated now"
	}
	if len(e.Estimate.Flags) > 0 {
		text += "; " + strings.Join(e.Estimate.Flags, " ")
	}
	return text
}

func detailText(c *quant.Cause) string {
	list := slices.Clone(c.Details)
	slices.SortStableFunc(list, func(a, b quant.Detail) int { return cmp.Compare(b.Count, a.Count) })
	if c.Changes == 0 { // it is no change of facts
		return c.Details[0].What
	}
	parts := []string{fmt.Sprintf("%d:", c.Changes)}
	for i, d := range list {
		parts = append(parts, fmt.Sprintf("%d %s", d.Count, d.What)+strings.Repeat(",", min(1, len(list)-1-i)))
	}
	return strings.Join(parts, " ")
}

func numericalText(x *quant.Explanation) string {
	if x.From.Published == nil {
		return "our own error"
	}
	return fmt.Sprintf("our own error; certificates of the records %.1g and %.1g", x.From.Certificate, x.To.Certificate)
}

// writeLargest lists single changes by the effect that each has alone.
func writeLargest(w io.Writer, x *quant.Explanation, shown []int) error {
	if !slices.ContainsFunc(x.Causes, func(c quant.Cause) bool { return len(c.Largest) > 0 }) {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nLargest single changes: how the estimate at the end differs from what it would be without each alone\n")
	for _, c := range x.Causes {
		note := ""
		if c.Candidates < c.Changes {
			note = fmt.Sprintf("of the %d that plain counting moves most", c.Candidates)
		}
		for i, e := range c.Largest {
			who := e.Vertex
			if e.Other != "" {
				who += " - " + e.Other
			}
			head := causeWords[c.Kind]
			if i > 0 {
				head, note = "", ""
			}
			fmt.Fprintf(t, "%s\t%s", head, who)
			for _, k := range shown {
				fmt.Fprintf(t, "\t%+.3f", rounded(100*e.Effect[k], 3))
			}
			fmt.Fprintf(t, "\t%s\n", note)
		}
	}
	return t.Flush()
}
