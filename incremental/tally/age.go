package tally

import (
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// observations has the times of the members' observations: how many different members have one of a
// known time, and the sum of the seconds from 1970 to the log time of the newest one of each.
type observations struct{ members, seconds int64 }

// count adds a member (sign 1) or takes it back (sign -1).
func (o *observations) count(s *state, sign int) {
	if s.observed != 0 && s.profile.own != nil {
		o.members += int64(sign)
		o.seconds += int64(sign) * (int64(s.observed) / int64(time.Second))
	}
}

// setObserved notes when the evidence behind a prediction was observed last, by the log: own times
// may be of another clock. The time is not known if the log had none yet.
func (s *state) setObserved(e graphstore.Evidence) {
	if s.observed = 0; e.Weight > 0 {
		s.observed = e.Changed
	}
}

// EvidenceAge returns the log time since the different members of a community were observed last,
// on average over those with a known time; 0 where nothing is predicted, or only by a built-in
// classifier.
func (t *Tallies) EvidenceAge(id CommunityID, now event.Time) time.Duration {
	o := &t.each[id].observations
	if o.members == 0 {
		return 0
	}
	mean := float64(o.seconds) / float64(o.members)
	age := float64(now)/float64(time.Second) - mean
	return time.Duration(max(0, age) * float64(time.Second))
}

// LabelAge returns the median age of the calibration labels that have a pair and a time, 0 without
// any. A label without a time that came before log time began has none.
func (t *Tallies) LabelAge(view graphstore.View, now event.Time) time.Duration {
	var times []event.Time
	for _, v := range t.rows {
		if at := view.LabelTime(v); at != 0 {
			times = append(times, at)
		}
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return max(0, time.Duration(now-times[len(times)/2]))
}
