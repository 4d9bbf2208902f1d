package evaluate

import (
	"cmp"
	"fmt"
	"slices"
)

// coverageSlack is how far the share of intervals that hold the truth may stay
// below their confidence before the advice calls them too short.
const coverageSlack = 0.05

// advice answers which method to use on this graph and whether its interval can be believed.
func (r *Report) advice() string {
	ranking := r.ranking()
	if len(ranking) == 0 {
		return "Nothing was evaluated."
	}
	best := ranking[0]
	text := fmt.Sprintf("Use `%s` here: its mean absolute error, protocols weighing the same, is %.4f", best.name, best.ae)
	if len(ranking) > 1 {
		text += fmt.Sprintf(", the smallest of %d; next is `%s` with %.4f", len(ranking), ranking[1].name, ranking[1].ae)
	}
	least := best.rows[0]
	for _, row := range best.rows {
		if row.Coverage < least.Coverage {
			least = row
		}
	}
	if least.Coverage >= r.Confidence-coverageSlack {
		return text + fmt.Sprintf(". Its %.0f %% interval can be believed: "+
			"it held the truth in %.1f %% of the cases or more (least under %s).",
			100*r.Confidence, 100*least.Coverage, least.Protocol)
	}
	return text + fmt.Sprintf(". Its %.0f %% interval is too short under %s, "+
		"where it held the truth in only %.1f %% of the cases.",
		100*r.Confidence, least.Protocol, 100*least.Coverage)
}

// standing is one method with one kernel over all protocols.
type standing struct {
	name string
	ae   float64 // mean over the protocols of the mean AE
	rows []Row
}

// ranking lists methods and kernels, the smallest error first; equal ones stay in
// the order of the rows.
func (r *Report) ranking() []standing {
	var out []standing
	for _, row := range r.Rows {
		at := slices.IndexFunc(out, func(s standing) bool { return s.name == row.Name() })
		if at < 0 {
			at = len(out)
			out = append(out, standing{name: row.Name()})
		}
		out[at].rows = append(out[at].rows, row)
	}
	for i := range out {
		for _, row := range out[i].rows {
			out[i].ae += row.AE / float64(len(out[i].rows))
		}
	}
	slices.SortStableFunc(out, func(a, b standing) int { return cmp.Compare(a.ae, b.ae) })
	return out
}
