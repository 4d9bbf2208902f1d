package tally

import (
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// observations has the times of the members' observations: how many different members have one,
// and the sum of the seconds from 1970 to the log time of the newest one of each.
type observations struct{ members, seconds int64 }

// count adds a member (sign 1) or takes it back (sign -1).
func (o *observations) count(s *state, sign int) {
	if s.isObserved && s.profile.own != nil {
		o.members += int64(sign)
		o.seconds += int64(sign) * (int64(s.observed) / int64(time.Second))
	}
}

// setObserved notes when the evidence behind a prediction was observed last, by the log: own times
// may be of another clock.
func (s *state) setObserved(e graphstore.Evidence) {
	s.observed, s.isObserved = e.Changed, e.Weight > 0
}

// EvidenceAge returns the log time since the different members of a community were observed last,
// on average; 0 where nothing is predicted, or only by a built-in classifier.
func (t *Tallies) EvidenceAge(id CommunityID, now event.Time) time.Duration {
	o := &t.each[id].observations
	if o.members == 0 {
		return 0
	}
	mean := float64(o.seconds) / float64(o.members)
	age := float64(now)/float64(time.Second) - mean
	return time.Duration(max(0, age) * float64(time.Second))
}

// LabelAge returns the median age of the calibration labels that have a pair, 0 without any.
func (t *Tallies) LabelAge(view graphstore.View, now event.Time) time.Duration {
	if len(t.rows) == 0 {
		return 0
	}
	times := make([]event.Time, len(t.rows))
	for i, v := range t.rows {
		times[i] = view.LabelTime(v)
	}
	slices.Sort(times)
	return max(0, time.Duration(now-times[len(times)/2]))
}
