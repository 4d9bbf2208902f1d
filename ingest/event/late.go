package event

import (
	"errors"
	"fmt"
	"time"
)

// LatePolicy decides which events are late, and what becomes of them. An event is late when its own
// time lies further than After behind the log's time at the receipt of its message. Vertex and
// control events, and events without a time, are never late. The zero value lets every event apply.
type LatePolicy struct {
	After time.Duration // 0: no event is late

	// The kinds whose late events are refused, with the reason Late. Those of other
	// kinds apply in their place in the log and are counted.
	Edges, Labels, Predictions, Members bool
}

// Validate reports every violation at once.
func (p LatePolicy) Validate() error {
	var errs []error
	if p.After < 0 || p.After > time.Duration(TimeMax) {
		errs = append(errs, fmt.Errorf("late.after: %v must be positive and below 146 years", p.After))
	}
	if p.After == 0 && p != (LatePolicy{}) {
		errs = append(errs, errors.New("late.after: missing; how far behind the log's time is late?"))
	}
	return errors.Join(errs...)
}

// Refuses reports whether late events of a kind are refused.
func (p LatePolicy) Refuses(k Kind) bool {
	refused := [Kinds]bool{KindEdge: p.Edges, KindLabel: p.Labels, KindPrediction: p.Predictions, KindMember: p.Members}
	return int(k) < Kinds && refused[k]
}

// IsLate reports whether an event of a kind with a time t is late when the log's
// time is now; 0 stands for no time.
func (p LatePolicy) IsLate(k Kind, t, now Time) bool {
	return p.After > 0 && k <= KindMember && t != 0 && now != 0 && t < now-Time(p.After)
}

// Problem counts in b a late event of a kind, and returns why it is refused, or
// nil when it applies.
func (p LatePolicy) Problem(b *Batch, k Kind, t, now Time) *Problem {
	b.Late[k]++
	if !p.Refuses(k) {
		return nil
	}
	return Problemf(Late, "its time, %v, is %v behind the log's, more than %v",
		t, time.Duration(now-t).Round(time.Millisecond), p.After)
}
