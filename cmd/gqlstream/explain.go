package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks/web"
)

type explainCmd struct {
	serverFlags
	Classes    string `placeholder:"LIST" help:"Names of the classes in order, or their number."`
	Everyone   bool   `help:"The community of every vertex, named everyone, is tracked."`
	Classifier string `placeholder:"NAME" help:"Built-in classifier of the pipeline: diffusion."`
	Method     string `placeholder:"NAME" help:"The method to explain. [the first published]"`

	Community string `required:"" placeholder:"NAME" help:"The community whose estimate changed."`
	From      string `placeholder:"POSITION|TIME" help:"${explain_from}"`
	To        string `placeholder:"POSITION|TIME" help:"The later place. [the newest estimate]"`
	Named     int    `default:"10" placeholder:"N" help:"${explain_named}"`

	Format string `default:"text" enum:"text,json" help:"text for reading, json for everything."`
}

func (*explainCmd) Help() string {
	return `Divides a change among members, predictions, labels, edges and the method. While
gqlstream run uses the state directory, start it with --listen ADDRESS and add --nats nats://ADDRESS
to --state. See docs/explain.md.

Examples:
  gqlstream explain --config gqlstream.yaml --community berlin
  gqlstream explain --config gqlstream.yaml --community berlin --from 2026-05-01T12:00:00Z \
      --to 2026-05-01T13:00:00Z --method sis-nacc
  gqlstream explain --config gqlstream.yaml --nats nats://127.0.0.1:4222 --community berlin \
      --from 1200 --to 3400 --format json`
}

// Run explains one estimate.
func (c *explainCmd) Run(ctx context.Context, con console) error {
	flags := config.ResultFlags{Classes: c.Classes, Everyone: c.Everyone, Classifier: c.Classifier}
	if err := flags.Merge(&c.settings); err != nil {
		return err
	}
	switch methods, err := quant.ParseMethods(c.Method); {
	case c.Named < 0:
		return config.Usagef("explain: --named %d is negative", c.Named)
	case c.Method == "":
	case err != nil:
		return config.Usage(err)
	case len(methods) != 1:
		return config.Usagef("explain: --method %s names %d methods; one is explained at a time",
			c.Method, len(methods))
	}
	conf, err := c.settings.Core()
	if err != nil {
		return err
	}
	b, err := c.openExisting(ctx, con)
	if err != nil {
		return err
	}
	e := pipeline.Explainer{
		Config: conf, Settings: &c.settings, JS: b.JS, Named: c.Named,
		Report: func(format string, args ...any) {
			fmt.Fprintf(con.Err, "explain: "+format+"\n", args...)
		},
	}
	x, err := e.Explain(ctx,
		web.ExplainQuery{Community: c.Community, Method: c.Method, From: c.From, To: c.To})
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return json.NewEncoder(con.Out).Encode(x)
	}
	return writeExplanation(con.Out, x)
}

// writeExplanation writes an explanation for people: shares in percent, changes in
// percentage points.
func writeExplanation(w io.Writer, x *quant.Explanation) error {
	shown := mostMoved(x.Change, classesShown)
	t := newTable(w)
	row := func(head string, values []float64, format string, digits int, tail string) {
		fmt.Fprint(t, head)
		for _, k := range shown {
			unit := math.Pow10(digits)
			fmt.Fprintf(t, "\t"+format, math.Round(100*values[k]*unit)/unit+0) // no negative zero
		}
		fmt.Fprintf(t, "\t%s\n", tail)
	}
	fmt.Fprintf(t, "%s by %s, position %d (%s) to %d (%s)\n\n", x.Community, x.Method,
		x.From.Position, cmp.Or(x.From.Time, "-"), x.To.Position, cmp.Or(x.To.Time, "-"))
	for _, k := range shown {
		fmt.Fprintf(t, "\t%s", x.Classes[k])
	}
	fmt.Fprintln(t, "\t")
	row("from", x.From.Shares(), "%.2f %%", 2, endText(&x.From))
	row("to", x.To.Shares(), "%.2f %%", 2, endText(&x.To))
	row("change", x.Change, "%+.2f", 2, "percentage points")
	partRow(t, "moved", shown, x.Moved, x.SEChange,
		"by members, predictions and edges; ± one standard error")
	partRow(t, "revised", shown, x.Revised, x.SERevised,
		"by labels, coefficients and models")
	fmt.Fprintln(t)
	for _, c := range x.Causes {
		row(c.Kind, c.Contribution, "%+.2f", 2, detailText(&c))
	}
	own := "numerical errors, and a fit at another moment than in the run"
	if x.From.Published != nil {
		own += fmt.Sprintf("; certificates of the records %.1g and %.1g",
			x.From.Certificate, x.To.Certificate)
	}
	row("numerical", x.Numerical, "%+.2f", 2, own)
	if n := len(x.Change) - len(shown); n > 0 {
		fmt.Fprintf(t, "\n%d other classes changed less; --format json has all.\n", n)
	}
	if !slices.ContainsFunc(x.Causes, func(c quant.Cause) bool { return len(c.Largest) > 0 }) {
		return t.Flush()
	}
	fmt.Fprint(t,
		"\nLargest single changes: the estimate at the end, less the estimate without this one "+
			"change\n")
	for _, c := range x.Causes {
		head := c.Kind
		for _, e := range c.Largest {
			who := e.Vertex
			if e.Other != "" {
				who += " - " + e.Other
			}
			row(head+"\t"+who, e.Effect, "%+.3f", 3, "")
			head = ""
		}
	}
	return t.Flush()
}

// partRow writes one part of a change with its standard errors.
func partRow(w io.Writer, head string, shown []int, values, errors []float64, tail string) {
	fmt.Fprint(w, head)
	for _, k := range shown {
		fmt.Fprintf(w, "\t%+.2f", math.Round(1e4*values[k])/100+0) // no negative zero
		if k < len(errors) {
			fmt.Fprintf(w, " ± %.2f", 100*errors[k])
		}
	}
	fmt.Fprintf(w, "\t%s\n", tail)
}

// mostMoved returns the numbers of the classes that changed most, in increasing order. most bounds
// how many.
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
	switch {
	case c.Changes == 0 && len(list) == 0: // too few to name
		return ""
	case c.Changes == 0: // it is no change of facts
		return list[0].What
	case len(list) == 0:
		return fmt.Sprint(c.Changes)
	}
	slices.SortStableFunc(list,
		func(a, b quant.Detail) int { return cmp.Compare(b.Count, a.Count) })
	parts := make([]string, len(list))
	for i, d := range list {
		parts[i] = fmt.Sprintf("%d %s", d.Count, d.What)
	}
	return fmt.Sprintf("%d: %s", c.Changes, strings.Join(parts, ", "))
}
