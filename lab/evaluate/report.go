package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gqlstream/quant"
)

// Report is the result of an evaluation.
type Report struct {
	Classes     int     `json:"classes"`
	Vertices    int     `json:"vertices"`
	Edges       int     `json:"edges"`
	Labelled    int     `json:"labelled"`    // vertices that may calibrate or be drawn
	Calibration int     `json:"calibration"` // of them, in each split
	Splits      int     `json:"splits"`
	Seed        uint64  `json:"seed"`
	Kernel      string  `json:"kernel"`
	Confidence  float64 `json:"confidence"` // nominal, of the intervals
	MembersMin  int     `json:"members_min"`
	Freshness   float64 `json:"label_freshness"` // of the labels when the log ends, on average
	Rows        []Row   `json:"rows"`            // by protocol, then by mean AE
	Advice      string  `json:"advice"`

	Outcomes []Outcome `json:"outcomes"` // every community and method, in the order drawn
}

// Row sums up one method under one protocol.
type Row struct {
	Protocol      string  `json:"protocol"`
	Method        string  `json:"method"`
	Communities   int     `json:"communities"`
	AE            float64 `json:"ae"`          // mean over communities
	AEError       float64 `json:"ae_se"`       // standard error of that mean
	RAE           float64 `json:"rae"`         // mean over communities
	Coverage      float64 `json:"coverage"`    // share of classes whose truth lies in the interval
	CoverageError float64 `json:"coverage_se"` // standard error of that share, over communities
	Width         float64 `json:"width"`       // mean width of the intervals
}

// Outcome is one estimate against its truth.
type Outcome struct {
	Protocol  string    `json:"protocol"`
	Split     int       `json:"split"`
	Community string    `json:"community"`
	Size      int       `json:"size"`
	Method    string    `json:"method"`
	Truth     []float64 `json:"truth"`
	Estimate  []float64 `json:"estimate"`
	Low       []float64 `json:"low"`
	High      []float64 `json:"high"`
	AE        float64   `json:"ae"`
	RAE       float64   `json:"rae"`
	Covered   float64   `json:"covered"` // share of classes whose truth lies in the interval
	Width     float64   `json:"width"`   // mean over classes
	Flags     []string  `json:"flags"`
}

func newReport(config Config, d *dataset) *Report {
	return &Report{
		Classes:     d.classes,
		Vertices:    d.view.Vertices(),
		Edges:       d.view.Edges(),
		Labelled:    len(d.labelled),
		Calibration: d.calibrating(config.Share),
		Splits:      config.Splits,
		Seed:        config.Seed,
		Kernel:      config.Core.Kernel,
		MembersMin:  config.MembersMin,
		Freshness:   d.fresh,
		Confidence:  cmp.Or(config.Core.Estimates[0].Confidence, quant.DefaultOptions().Confidence),
	}
}

// add scores the estimates of one split.
func (r *Report) add(split int, bags []*bag) {
	for _, b := range bags {
		for _, e := range b.estimates {
			o := Outcome{
				Protocol: b.protocol, Split: split, Community: b.name, Size: b.size,
				Method: e.Method,
				Truth:  b.truth, Estimate: e.Prevalence, Low: e.Low, High: e.High, Flags: e.Flags,
			}
			o.score()
			r.Outcomes = append(r.Outcomes, o)
		}
	}
}

// score compares the estimate with the truth. The relative error smooths both first: (x + e)/(1 + K
// e) with e = 1/(2T), T the size of the community (Forman, 2008; as QuaPy does).
func (o *Outcome) score() {
	const slack = 1e-12 // a share that is exactly a bound is inside
	smooth := 1 / (2 * float64(o.Size))
	for i, truth := range o.Truth {
		off := math.Abs(o.Estimate[i] - truth)
		o.AE += off
		o.RAE += off / (truth + smooth)
		if o.Low[i]-slack <= truth && truth <= o.High[i]+slack {
			o.Covered++
		}
		o.Width += o.High[i] - o.Low[i]
	}
	for _, mean := range []*float64{&o.AE, &o.RAE, &o.Covered, &o.Width} {
		*mean /= float64(len(o.Truth))
	}
}

// sumUp makes the rows from the outcomes.
func (r *Report) sumUp() {
	type cell struct{ protocol, method string }
	outcomes := map[cell][]*Outcome{}
	var order []string
	var cells []cell
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		at := cell{o.Protocol, o.Method}
		if outcomes[at] == nil {
			cells = append(cells, at)
		}
		outcomes[at] = append(outcomes[at], o)
		if !slices.Contains(order, o.Protocol) {
			order = append(order, o.Protocol)
		}
	}
	r.Rows = r.Rows[:0]
	for _, c := range cells {
		r.Rows = append(r.Rows, rowOf(outcomes[c]))
	}
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Protocol), slices.Index(order, b.Protocol)),
			cmp.Compare(a.AE, b.AE))
	})
	r.Advice = r.advice()
}

// rowOf returns the means over the outcomes of one method and protocol.
func rowOf(outcomes []*Outcome) Row {
	mean := func(value func(*Outcome) float64) (mean, standardError float64) {
		n, squares := float64(len(outcomes)), 0.0
		for _, o := range outcomes {
			x := value(o)
			mean, squares = mean+x, squares+x*x
		}
		mean /= n
		if n > 1 {
			standardError = math.Sqrt(max(squares/n-mean*mean, 0) / (n - 1))
		}
		return mean, standardError
	}
	first := outcomes[0]
	row := Row{Protocol: first.Protocol, Method: first.Method, Communities: len(outcomes)}
	row.AE, row.AEError = mean(func(o *Outcome) float64 { return o.AE })
	row.Coverage, row.CoverageError = mean(func(o *Outcome) float64 { return o.Covered })
	row.RAE, _ = mean(func(o *Outcome) float64 { return o.RAE })
	row.Width, _ = mean(func(o *Outcome) float64 { return o.Width })
	return row
}

// coverageSlack is how far the share of intervals that hold the truth may stay
// below their confidence before the advice calls them too short.
const coverageSlack = 0.05

// advice answers which method to use on this graph and whether its interval can be believed.
func (r *Report) advice() string {
	ranking := slices.DeleteFunc(r.ranking(),
		func(s standing) bool { return strings.Contains(s.name, afterAsk) }) // no method
	if len(ranking) == 0 {
		return "Nothing was evaluated."
	}
	best := ranking[0]
	text := fmt.Sprintf(
		"Use `%s` here: its mean absolute error, protocols weighing the same, is %.4f",
		best.name, best.ae)
	if len(ranking) > 1 {
		text += fmt.Sprintf(", the smallest of %d; next is `%s` with %.4f",
			len(ranking), ranking[1].name, ranking[1].ae)
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

// freshnessLeast is the mean freshness of the labels below which the truth of a report is doubtful.
const freshnessLeast = 0.9

// warning says that labels are older than the predictions of now; "" where they are not.
func (r *Report) warning() string {
	if r.Freshness >= freshnessLeast {
		return ""
	}
	return fmt.Sprintf("Warning: predictions have changed since the labels were given "+
		"(label freshness %.2f of 1). This report takes the labels for the truth of now, "+
		"so its errors are too large. Use --by-time, which holds each label against the "+
		"estimate of its time.", r.Freshness)
}

// standing is one method over all protocols.
type standing struct {
	name string
	ae   float64 // mean over the protocols of the mean AE
	rows []Row
}

// ranking lists methods, the smallest error first; equal ones stay in
// the order of the rows.
func (r *Report) ranking() []standing {
	var out []standing
	for _, row := range r.Rows {
		at := slices.IndexFunc(out, func(s standing) bool { return s.name == row.Method })
		if at < 0 {
			at = len(out)
			out = append(out, standing{name: row.Method})
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
