package evaluate

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// formats are the forms a report can be written in.
var formats = []string{"markdown", "json", "csv"}

// Write writes the report as markdown (for reading), json (the whole report) or
// csv (its rows).
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "markdown", "":
		return r.markdown(w)
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	case "csv":
		return r.csv(w)
	}
	return fmt.Errorf("evaluate: format %q: there are %v", format, formats)
}

func (r *Report) markdown(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d vertices, %d edges, %d classes; %d labelled vertices, of which %d calibrate in each of %d splits; seed %d.\n",
		r.Vertices, r.Edges, r.Classes, r.Labelled, r.Calibration, r.Splits, r.Seed)
	protocol := ""
	for _, row := range r.Rows {
		if row.Protocol != protocol {
			protocol = row.Protocol
			fmt.Fprintf(w, "\n### %s (%d communities)\n\n| method | AE | ± | RAE | rank | covered by %.0f %% interval | width |\n|---|---|---|---|---|---|---|\n",
				protocol, row.Communities, 100*r.Confidence)
		}
		_, err = fmt.Fprintf(w, "| `%s` | %.4f | %.4f | %.3f | %.1f | %.1f %% | %.3f |\n",
			row.Method, row.AE, row.AEError, row.RAE, row.Rank, 100*row.Coverage, row.Width)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s\n", r.Advice())
	return err
}

func (r *Report) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"protocol", "method", "communities", "ae", "ae_se", "rae", "rank", "coverage", "width"})
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	for _, row := range r.Rows {
		out.Write([]string{
			row.Protocol, row.Method, strconv.Itoa(row.Communities), number(row.AE), number(row.AEError),
			number(row.RAE), number(row.Rank), number(row.Coverage), number(row.Width),
		})
	}
	out.Flush()
	return out.Error()
}

// Advice answers in a sentence or two which method to use on this graph and
// whether its interval can be believed.
func (r *Report) Advice() string {
	best, mean, protocols := r.best()
	if best == "" {
		return "Nothing was evaluated."
	}
	least, where := 1.0, ""
	for _, row := range r.Rows {
		if row.Method == best && row.Coverage < least {
			least, where = row.Coverage, row.Protocol
		}
	}
	text := fmt.Sprintf("Use `%s` here: its mean absolute error over %d protocol(s) is %.4f, the smallest.", best, protocols, mean)
	switch {
	case where == "":
		return text + " Its intervals always held the truth."
	case least >= r.Confidence-0.05:
		return text + fmt.Sprintf(" Its %.0f %% interval can be believed: it holds the truth in %.1f %% of cases at worst (%s).",
			100*r.Confidence, 100*least, where)
	}
	return text + fmt.Sprintf(" Its %.0f %% interval is too short under %s, where it holds the truth in %.1f %% of cases only.",
		100*r.Confidence, where, 100*least)
}

// best returns the method with the smallest AE, protocols weighing the same.
func (r *Report) best() (method string, mean float64, protocols int) {
	sums := map[string]float64{}
	var methods, seen []string
	for _, row := range r.Rows {
		if _, ok := sums[row.Method]; !ok {
			methods = append(methods, row.Method)
		}
		if !slices.Contains(seen, row.Protocol) {
			seen = append(seen, row.Protocol)
		}
		sums[row.Method] += row.AE
	}
	slices.Sort(methods)
	for _, m := range methods {
		if method == "" || sums[m] < sums[method] {
			method = m
		}
	}
	if method == "" {
		return "", 0, 0
	}
	return method, sums[method] / float64(len(seen)), len(seen)
}
