package evaluate

import (
	"cmp"
	"math"
	"slices"

	"gqlstream/quant"
)

// Report is what an evaluation found.
type Report struct {
	Classes     int       `json:"classes"`
	Vertices    int       `json:"vertices"`
	Edges       int       `json:"edges"`
	Labelled    int       `json:"labelled"`    // vertices that may calibrate or be drawn
	Calibration int       `json:"calibration"` // of them, in each split
	Splits      int       `json:"splits"`
	Seed        uint64    `json:"seed"`
	Confidence  float64   `json:"confidence"` // nominal, of the intervals
	Rows        []Row     `json:"rows"`       // by protocol, then by mean AE
	Outcomes    []Outcome `json:"-"`          // every community and method, in the order drawn
}

// Row sums up one method under one protocol.
type Row struct {
	Protocol    string  `json:"protocol"`
	Method      string  `json:"method"`
	Communities int     `json:"communities"`
	AE          float64 `json:"ae"`       // mean over communities
	AEError     float64 `json:"ae_se"`    // standard error of that mean
	RAE         float64 `json:"rae"`      // mean over communities
	Rank        float64 `json:"rank"`     // mean rank by AE among the methods, 1 is best
	Coverage    float64 `json:"coverage"` // share of classes whose truth lies in the interval
	Width       float64 `json:"width"`    // mean width of the intervals
}

// Outcome is one estimate against its truth.
type Outcome struct {
	Protocol  string    `json:"protocol"`
	Split     int       `json:"split"`
	Community string    `json:"community"`
	Method    string    `json:"method"`
	Truth     []float64 `json:"truth"`
	Estimate  []float64 `json:"estimate"`
	Low       []float64 `json:"low"`
	High      []float64 `json:"high"`
	AE        float64   `json:"ae"`
	RAE       float64   `json:"rae"`
	rank      float64
}

func newReport(config Config, d *dataset) *Report {
	confidence := quant.DefaultOptions().Confidence
	if estimates := config.Core.Estimates; len(estimates) > 0 && estimates[0].Confidence > 0 {
		confidence = estimates[0].Confidence
	}
	return &Report{
		Classes: d.classes, Vertices: d.view.Vertices(), Edges: d.view.Edges(),
		Labelled: len(d.labelled), Calibration: max(1, int(config.Share*float64(len(d.labelled)))),
		Splits: config.Splits, Seed: config.Seed, Confidence: confidence,
	}
}

// add scores the estimates of one split and sums up anew.
func (r *Report) add(split int, bags []*bag, estimates map[key]quant.Estimate) {
	byBag := map[string][]quant.Estimate{}
	for k, e := range estimates {
		byBag[k.community] = append(byBag[k.community], e)
	}
	for _, b := range bags {
		drawn := byBag[b.name]
		slices.SortFunc(drawn, func(a, b quant.Estimate) int { return cmp.Compare(a.Method, b.Method) })
		first := len(r.Outcomes)
		for _, e := range drawn {
			r.Outcomes = append(r.Outcomes, Outcome{
				Protocol: b.protocol, Split: split, Community: b.name, Method: e.Method, Truth: b.truth,
				Estimate: e.Prevalence, Low: e.Low, High: e.High,
				AE:  quant.AbsoluteError(e.Prevalence, b.truth),
				RAE: quant.RelativeAbsoluteError(e.Prevalence, b.truth, float64(b.size)),
			})
		}
		rank(r.Outcomes[first:])
	}
	r.sumUp()
}

// rank ranks the methods of one community by AE; equal errors share their ranks.
func rank(outcomes []Outcome) {
	for i := range outcomes {
		less, equal := 0, 0
		for _, o := range outcomes {
			switch {
			case o.AE < outcomes[i].AE:
				less++
			case o.AE == outcomes[i].AE: // equal bits: the same estimate
				equal++
			}
		}
		outcomes[i].rank = float64(less) + float64(equal+1)/2
	}
}

func (r *Report) sumUp() {
	type cell struct{ protocol, method string }
	index := map[cell]int{}
	var order []string
	r.Rows = nil
	squares := []float64{}
	for _, o := range r.Outcomes {
		at, ok := index[cell{o.Protocol, o.Method}]
		if !ok {
			at = len(r.Rows)
			index[cell{o.Protocol, o.Method}] = at
			r.Rows = append(r.Rows, Row{Protocol: o.Protocol, Method: o.Method})
			squares = append(squares, 0)
			if !slices.Contains(order, o.Protocol) {
				order = append(order, o.Protocol)
			}
		}
		row := &r.Rows[at]
		row.Communities++
		row.AE += o.AE
		squares[at] += o.AE * o.AE
		row.RAE += o.RAE
		row.Rank += o.rank
		inside, width := within(o)
		row.Coverage += inside
		row.Width += width
	}
	for i := range r.Rows {
		r.Rows[i].divide(squares[i])
	}
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Protocol), slices.Index(order, b.Protocol)), cmp.Compare(a.AE, b.AE))
	})
}

// divide turns the sums of a row into means.
func (row *Row) divide(squares float64) {
	n := float64(row.Communities)
	row.AE /= n
	row.RAE /= n
	row.Rank /= n
	row.Coverage /= n
	row.Width /= n
	if n > 1 {
		row.AEError = math.Sqrt(max(squares/n-row.AE*row.AE, 0) / (n - 1))
	}
}

// within returns the share of classes whose truth lies in its interval, and the
// mean width.
func within(o Outcome) (inside, width float64) {
	if len(o.Low) == 0 {
		return 0, 0
	}
	const slack = 1e-12 // a share that is exactly a bound is inside
	for i, t := range o.Truth {
		if o.Low[i]-slack <= t && t <= o.High[i]+slack {
			inside++
		}
		width += o.High[i] - o.Low[i]
	}
	k := float64(len(o.Truth))
	return inside / k, width / k
}
