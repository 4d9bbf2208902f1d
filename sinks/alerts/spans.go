package alerts

import (
	"math"
	"slices"
)

// spans lists how many evaluations back a CUSUM looks at once, beside its sums. A jump is news
// from the first evaluation on, or from the first few: sums, which are best for a slow and
// steady movement, would want several times as much of it.
var spanEvaluations = []int{2, 4, 8}

// spans holds the totals of the last evaluations, oldest first, and how far a series moves by
// itself over several of them.
type spans struct {
	Past    []sample `json:"past,omitempty"`
	Spreads []spread `json:"spreads,omitempty"` // by spanEvaluations
	Height  float64  `json:"height,omitempty"`  // of the most unusual movement, as of a CUSUM
	Since   int64    `json:"since,omitempty"`   // log time of the evaluation where it began
	From    float64  `json:"from,omitempty"`    // the total then
}

// look raises the height to that of the most unusual movement up to now. one is the spread of
// a single evaluation. A movement below floor is never news.
func (s *spans) look(r *Rule, now sample, one *spread, floor float64) {
	if n := len(s.Past); n > 0 {
		s.Since, s.From = s.Past[n-1].Cell, s.Past[n-1].Total
	}
	for i, back := range spanEvaluations {
		if len(s.Past) < back || len(s.Spreads) <= i {
			continue
		}
		then := s.Past[len(s.Past)-back]
		moved, variance := now.Total-then.Total, now.Variance-then.Variance
		scale := s.Spreads[i].over(one, float64(back), variance)
		if height := r.height(math.Abs(ratio(moved, math.Hypot(scale, floor)))); height > s.Height {
			s.Height, s.Since, s.From = height, then.Cell, then.Total
		}
	}
}

// learn takes the totals of an evaluation.
func (s *spans) learn(now sample) {
	for len(s.Spreads) < len(spanEvaluations) {
		s.Spreads = append(s.Spreads, spread{})
	}
	for i, back := range spanEvaluations {
		if len(s.Past) >= back {
			then := s.Past[len(s.Past)-back]
			s.Spreads[i].learn(now.Total-then.Total, now.Variance-then.Variance, 1, cusumMemory)
		}
	}
	s.Past = append(s.Past, now)
	if most := slices.Max(spanEvaluations); len(s.Past) > most {
		s.Past = slices.Delete(s.Past, 0, len(s.Past)-most)
	}
}

// height returns the height of a CUSUM that is passed by itself as often as one of the
// movements of so many spreads, over all spans; see cusumShape.
func (r *Rule) height(spreads float64) float64 {
	drift := max(r.Drift, 0.05)
	tail := spreads*spreads/2 + math.Log(max(spreads, 1)) + math.Log(math.Sqrt(2*math.Pi)/2)
	if spreads < 8 { // else that is what the logarithm of the probability is
		tail = -math.Log(math.Erfc(spreads / math.Sqrt2))
	}
	looks := math.Log(float64(len(spanEvaluations) + 2))
	return max(0, (tail-looks+math.Log(4*drift*drift))/(2*drift)-cusumEdge)
}

// highest is the height of a CUSUM that a threshold is compared with: that of its sums, or
// where the threshold follows from the budget that of the most unusual movement.
func (d *detector) highest(r *Rule) float64 {
	sums := max(d.Up.S, d.Down.S)
	if !r.When.Budgeted {
		return sums
	}
	return max(sums, d.Longer.Height)
}
