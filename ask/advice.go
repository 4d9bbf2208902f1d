package ask

import (
	"math"

	"gqlstream/quant"
)

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

// advise reads what an estimate says of its own error. The part of the variance that comes
// from the labels of a class goes as one over their effective number, so as many again as
// count now halve it. It reports false where calibration labels have no part.
func advise(s *quant.Snapshot) (Advice, bool) {
	k := len(s.SE)
	var a Advice
	all, most := 0.0, 0.0
	for i := range k {
		all += s.SE[i] * s.SE[i]
		part := 0.0
		for j := range k {
			part += s.Open * s.Open * s.Label[i*k+j]
		}
		if part > most {
			most, a.Class = part, i
		}
	}
	if !s.Solved || !(most > 0) || !(all > 0) {
		return a, false
	}
	a.Share, a.Effective = min(most/all, 1), s.NEff[a.Class]
	a.More = max(int(math.Ceil(a.Effective)), 1)
	return a, true
}
