package pipeline

import (
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// A fold that takes the place of one that was further takes some of its steps again. They must not
// count twice, but steps without messages, which end where the one before does, count.
func TestStepsThatAreTakenAgainCountOnce(t *testing.T) {
	step := func(first, last event.Position) *event.Batch {
		return &event.Batch{
			First:   first,
			Last:    last,
			Refused: []event.Refusal{{Reason: event.Malformed, More: 1}},
		}
	}
	var s shownStatus
	for _, b := range []*event.Batch{
		step(1, 4), step(5, 9), step(10, 9), step(1, 4), step(5, 9),
		step(10, 12),
	} {
		if s.isNew(b) {
			s.count(b, b.Refused, 0)
		}
	}
	if refused := s.now.Refused[string(event.Malformed)]; s.now.Steps != 4 || refused != 8 {
		t.Errorf("%d steps, %d refused; want 4 and 8", s.now.Steps, refused)
	}
}

// That no event comes must be said after a while, of the newest of all kinds; a log without events
// says nothing.
func TestSilenceOfProducersIsReported(t *testing.T) {
	now := time.Unix(100_000, 0)
	var d deployment
	for _, c := range []struct {
		ago  map[string]time.Duration
		want string
	}{
		{nil, ""},
		{map[string]time.Duration{"edge": time.Hour, "label": time.Minute}, ""},
		{
			map[string]time.Duration{"edge": time.Hour, "label": 26*time.Minute + time.Second},
			"no event has come for 26m0s, and the last was a label: do the producers run?",
		},
	} {
		d.now.LastEvents = map[string]time.Time{}
		for kind, ago := range c.ago {
			d.now.LastEvents[kind] = now.Add(-ago)
		}
		if got := d.silence(now); got != c.want {
			t.Errorf("%v: %q, want %q", c.ago, got, c.want)
		}
	}
}
