package pipeline

import (
	"testing"

	"gqlstream/ingest/event"
)

// A fold that takes the place of one that was further takes some of its steps again. They must not count twice, but
// steps without messages, which end where the one before does, count.
func TestStepsThatAreTakenAgainCountOnce(t *testing.T) {
	step := func(first, last event.Position) *event.Batch {
		return &event.Batch{
			First:   first,
			Last:    last,
			Refused: []event.Refusal{{Reason: event.Malformed, More: 1}},
		}
	}
	var s shownStatus
	for _, b := range []*event.Batch{step(1, 4), step(5, 9), step(10, 9), step(1, 4), step(5, 9), step(10, 12)} {
		if s.isNew(b) {
			s.count(b, b.Refused, 0)
		}
	}
	if refused := s.now.Refused[string(event.Malformed)]; s.now.Steps != 4 || refused != 8 {
		t.Errorf("%d steps, %d refused; want 4 and 8", s.now.Steps, refused)
	}
}
