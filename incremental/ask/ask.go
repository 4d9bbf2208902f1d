package ask

import (
	"errors"
	"fmt"
	"math"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Question configures a draw.
type Question struct {
	Communities []string
	Count       int     // vertices to label now; 0: as many as TargetWidth needs
	TargetWidth float64 // half-width of the widest interval of each community; 0: Count decides
	Confidence  float64 // of the intervals; 0 is 0.9
	Seed        uint64
	Position    event.Position // of the log, so that a later question draws others

	Shares map[string][]float64 // of the members without a label, as estimated now; nil: not known
}

// validate reports a question that has no answer.
func (q Question) validate() error {
	switch {
	case len(q.Communities) == 0:
		return errors.New("ask: no community")
	case q.Count < 0 || q.Count == 0 && q.TargetWidth == 0:
		return fmt.Errorf("ask: %d labels; want at least 1, or a target width", q.Count)
	case q.Count > 0 && q.TargetWidth != 0:
		return errors.New("ask: a count and a target width exclude each other")
	case !(q.TargetWidth >= 0 && q.TargetWidth < 1):
		return fmt.Errorf("ask: the target width %v is not between 0 and 1", q.TargetWidth)
	case !(q.Confidence >= 0 && q.Confidence < 1):
		return fmt.Errorf("ask: the confidence %v is not between 0 and 1", q.Confidence)
	}
	return nil
}

// Drawn is a vertex to be labelled, or one that was audited before, as publish reads it back.
type Drawn struct {
	ID          event.ID `json:"-"`
	Vertex      string   `json:"vertex"`
	Label       *string  `json:"label"` // nil: to be filled in
	Role        string   `json:"role"`
	Pi          float64  `json:"pi"`
	Communities []string `json:"-"` // of those asked about
}

// Offer is the gain of a number of labels in one community.
type Offer struct {
	Community string  `json:"community"`
	Labels    int     `json:"labels"`     // audit labels in it, those of before included
	HalfWidth float64 `json:"half_width"` // of the widest interval
}

// Answer is a draw and the expected interval.
type Answer struct {
	Position event.Position `json:"position"`
	Fresh    int            `json:"fresh"` // vertices to be labelled; the others were before
	// of this draw, by community in the order of the question
	Offers []Offer  `json:"offers"`
	Others []Offer  `json:"others"` // of other numbers of labels, for comparison
	Advice []Advice `json:"advice"` // which other labels would help; of a Source
	When   []When   `json:"when"`   // whether it is time to ask; of a Source
	Drawn  []Drawn  `json:"vertices"`
}

// Ask draws from a graph.
func Ask(view graphstore.View, classes event.ClassSet, q Question) (*Answer, error) {
	if err := q.validate(); err != nil {
		return nil, err
	}
	p, err := newPlan(view, classes, q)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Position: q.Position, Others: p.compare(), Advice: []Advice{}, When: []When{}}
	if q.Count > 0 {
		for _, c := range p.candidates {
			if c.before.Class != event.NoClass {
				q.Count++ // in the draw in addition
			}
		}
		p.spend(float64(q.Count))
	} else {
		p.divideForWidth(q.TargetWidth)
	}
	for i := range p.groups {
		answer.Offers = append(answer.Offers, p.offer(i))
	}
	p.draw(answer)
	return answer, nil
}

// offersOf are the numbers of labels that are compared.
var offersOf = []int{10, 25, 50, 100, 200, 400}

// compare returns the offers of other numbers of labels in each community by itself.
func (p *plan) compare() (offers []Offer) {
	for g := range p.groups {
		group := &p.groups[g]
		for _, n := range offersOf {
			if n < len(group.members) {
				offers = append(
					offers,
					Offer{Community: group.name, Labels: n, HalfWidth: p.halfWidth(g, float64(n))},
				)
			}
		}
	}
	return offers
}

// When reports whether it is time to label members of a community, and why.
type When struct {
	Community string `json:"community"`
	Now       bool   `json:"now"`
	Reason    string `json:"reason"`
}

// whenOf reports whether it is time to ask about a community with this estimate.
func whenOf(s *quant.Snapshot) (now bool, reason string) {
	switch {
	case !s.Solved:
		return true, "there is no estimate yet, and labels of members drawn at random give one"
	case s.IsBehind():
		return true, "opinions have moved lately, and the extent depends on members without a " +
			"post since then"
	case s.HasStaleLabels():
		return true, fmt.Sprintf("%.0f %% of the labels no longer fit the predictions of the same "+
			"people", 100*s.Memory.Stale)
	case s.Audits == 0:
		return true, "no label of a member drawn at random tests the estimate yet"
	}
	return false, "the labels are fresh and nothing has moved by more than the interval allows for"
}

// Advice names the calibration labels that would make the present interval of a community
// narrower.
type Advice struct {
	Community string  `json:"community"`
	Name      string  `json:"name"`      // of the class
	Class     int     `json:"class"`     // whose labels cost most of the variance
	Share     float64 `json:"share"`     // of the variance of all classes together
	Effective float64 `json:"effective"` // labels of the class that count for the community now
	More      int     `json:"more"`      // labels of it, near the community, that halve that part
}

// advise finds the classes with the largest part in the variance of an estimate. The part of the
// labels of a class is proportional to one over their effective number, so twice the labels halve
// it. advise reports false if calibration labels have no part in the variance.
func advise(s *quant.Snapshot) (a Advice, ok bool) {
	all, most := 0.0, 0.0
	for i, se := range s.SE {
		all += se * se
		if part := s.Open * s.Open * s.Labels[i]; part > most {
			most, a.Class = part, i
		}
	}
	if !(most > 0) || !(all > 0) {
		return a, false
	}
	a.Share, a.Effective = min(most/all, 1), s.NEff[a.Class]
	a.More = max(int(math.Ceil(a.Effective)), 1)
	return a, true
}
