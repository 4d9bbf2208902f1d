package quant

// Explanation says why an estimate moved between two places of the log. Vectors
// have length K. The contributions of the causes and Numerical sum to Change.
type Explanation struct {
	Community string         `json:"community"`
	Method    string         `json:"method"`
	Classes   []string       `json:"classes,omitempty"`
	From      ExplanationEnd `json:"from"`
	To        ExplanationEnd `json:"to"`
	Change    []float64      `json:"change"` // of the shares shown, to less from
	// sums of the contributions of events, and of new knowledge
	Moved   []float64 `json:"moved"`
	Revised []float64 `json:"revised"`
	// standard errors of Moved and Revised, as of a record
	SEChange  []float64 `json:"se_change,omitempty"`
	SERevised []float64 `json:"se_revised,omitempty"`
	Causes    []Cause   `json:"causes"`    // those that occurred
	Numerical []float64 `json:"numerical"` // our own error: the change less the contributions
	States    int       `json:"states"`    // estimates that were compared
}

// ExplanationEnd describes the estimate at one of the two places.
type ExplanationEnd struct {
	Position uint64 `json:"position"`
	Time     string `json:"time,omitempty"` // log time, RFC 3339

	// Estimate was made for the explanation, from the state at Position, with a
	// certificate far below that of a running pipeline.
	Estimate Estimate `json:"estimate"`

	// Vertices is the number of different members of the community. BelowFloor says that nothing is
	// to be published of it.
	Vertices   int  `json:"-"`
	BelowFloor bool `json:"-"`

	// Published holds the shares of the record of Position, when there is one that
	// could be read. Change is then between published shares.
	Published   []float64 `json:"published,omitempty"`
	Certificate float64   `json:"certificate,omitempty"` // of the published record
}

// Shares returns the published shares if there are any, else the computed ones.
func (e *ExplanationEnd) Shares() []float64 {
	if e.Published != nil {
		return e.Published
	}
	return e.Estimate.Prevalence
}

// The kinds of causes, in the order in which they are listed.
const (
	CauseJoined      = "joined"      // members that joined, with the first predictions they brought
	CauseLeft        = "left"        // members that left, with the predictions that went with them
	CausePredictions = "predictions" // predictions of the same model version
	// all predictions, when the pipeline switched to another model version
	CauseModel  = "model"
	CauseAge    = "age" // predictions and labels grew older, and count less than newer ones
	CauseLabels = "labels"
	CauseEdges  = "edges" // edges and their weights, those that expired included
	// attributes of vertices
	CauseAttributes = "attributes"

	// Decisions of auto that follow from the causes above.
	CauseCoefficients = "coefficients" // of the posterior, where they were fitted again
	CauseGamma        = "gamma"        // how far the community was selected by class

	// Where a privacy floor holds, in place of causes with fewer changes than that.
	CauseFew = "few"
)

// Cause is one kind of change between the two places.
type Cause struct {
	Kind         string    `json:"kind"`
	Contribution []float64 `json:"contribution"` // its Shapley value among the causes
	// members, predictions, labels, edges, or vertices by their attributes that differ
	Changes int      `json:"changes"`
	Details []Detail `json:"details"`
	Largest []Effect `json:"largest,omitempty"` // changes alone, where there are few
}

// Detail counts some of the changes of a cause.
type Detail struct {
	What  string `json:"what"`
	Count int    `json:"count"`
}

// Effect is the effect of one change alone: the estimate at the end less the estimate
// there had it not happened. Effects of one cause need not sum to its contribution.
type Effect struct {
	Vertex string    `json:"vertex"`
	Other  string    `json:"other,omitempty"` // the other end of an edge
	Effect []float64 `json:"effect"`
}

// Settle sets Change, Moved, Revised and Numerical from the shares at both ends and the
// contributions. CauseFew, too few changes to name, is in neither Moved nor Revised.
func (x *Explanation) Settle() {
	from, to := x.From.Shares(), x.To.Shares()
	x.Change, x.Numerical = make([]float64, len(to)), make([]float64, len(to))
	x.Moved, x.Revised = make([]float64, len(to)), make([]float64, len(to))
	for k := range to {
		x.Change[k] = to[k] - from[k]
		sum := 0.0
		for _, c := range x.Causes {
			sum += c.Contribution[k]
			switch c.Kind {
			case CauseJoined, CauseLeft, CausePredictions, CauseAge, CauseEdges, CauseAttributes:
				x.Moved[k] += c.Contribution[k]
			case CauseModel, CauseLabels, CauseCoefficients, CauseGamma:
				x.Revised[k] += c.Contribution[k]
			}
		}
		x.Numerical[k] = x.Change[k] - sum
	}
}
