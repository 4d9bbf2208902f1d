package ingest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
)

// lateLog publishes labels with irregular times, one or two a message, and returns the
// position and index of those that are late by a minute.
func (b *testBroker) lateLog(rng *rand.Rand, messages, most int) (late []string) {
	b.t.Helper()
	now := 0
	for p := 1; p <= messages; p++ {
		payload, highest := "[", now
		for i := range 1 + rng.IntN(most) {
			if i > 0 {
				payload += ","
			}
			at := 10_000 + 10*p - rng.IntN(120)
			payload += fmt.Sprintf(`{"vertex":%d,"class":1,"time":%d}`, rng.IntN(50), at)
			if now > 0 && at < now-60 {
				late = append(late, fmt.Sprintf("%d/%d", p, i))
			}
			highest = max(highest, at)
		}
		b.publish(event.KindLabel, payload+"]")
		now = highest
	}
	return late
}

// lateOf runs through a source and returns the events that were refused as late. It asks
// stop at each step whether to end.
func lateOf(t *testing.T, s Source, stop func(*event.Batch) bool) (late []string, counted int) {
	t.Helper()
	var batch event.Batch
	for {
		err := s.Next(testContext(t), &batch)
		if errors.Is(err, io.EOF) {
			return late, counted
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.Refused {
			if r.Reason == event.Late {
				late = append(late, fmt.Sprintf("%d/%d", r.Position, r.Index))
			}
		}
		counted += batch.Late[event.KindLabel]
		if stop(&batch) {
			return late, counted
		}
	}
}

func never(*event.Batch) bool { return false }

// Which events are late must be a matter of the log alone: not of how it is cut, nor
// of where a run begins again.
func TestTheLogDecidesWhatIsLate(t *testing.T) {
	for seed := range uint64(6) {
		b := startBroker(t, "")
		rng := rand.New(rand.NewPCG(seed, 9))
		want := b.lateLog(rng, 120, 2)
		if len(want) < 10 {
			t.Fatalf("seed %d: only %d late", seed, len(want))
		}
		for _, step := range []StepConfig{
			{},
			{Every: -1},
			{EventsMax: 7, Every: -1},
			{Every: time.Second, EmitEvery: 30 * time.Second},
			{Every: time.Minute, EventsMax: 50},
		} {
			step.Time, step.Late = EventTime, event.LatePolicy{After: time.Minute, Labels: true}
			s := b.open(JetStreamConfig{UntilLast: true, Step: step})
			got, counted := lateOf(t, s, never)
			s.Close()
			if !slices.Equal(got, want) || counted != len(want) {
				t.Fatalf(
					"seed %d, steps %+v: %v late (%d counted), want %v", seed, step, got, counted,
					want,
				)
			}
			var at Resume
			var parts []string
			for end := 1; end <= 120; end += 1 + rng.IntN(40) {
				s := b.open(JetStreamConfig{UntilLast: true, Step: step, From: at})
				part, _ := lateOf(
					t,
					s,
					func(b *event.Batch) bool { at = resumeAfter(b); return int(b.Last) >= end },
				)
				s.Close()
				parts = append(parts, part...)
			}
			s = b.open(JetStreamConfig{UntilLast: true, Step: step, From: at})
			part, _ := lateOf(t, s, never)
			s.Close()
			if parts = append(parts, part...); !slices.Equal(parts, want) {
				t.Fatalf(
					"seed %d, steps %+v: with restarts %v late, want %v", seed, step, parts, want,
				)
			}
		}
	}
}

// In a log with the broker's times an event must be late by its message's time. Events that
// are published again from the quarantine must never be late.
func TestRetriedEventsAreNotLate(t *testing.T) {
	b := startBroker(t, "")
	if err := broker.EnsureStreams(testContext(t), b.js, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	b.publish(
		event.KindLabel,
		fmt.Sprintf(
			`[{"vertex":1,"class":1,"time":%d},{"vertex":2,"class":1,"time":%d},{"vertex":3,`+
				`"class":1}]`,
			ago(time.Hour),
			ago(10*time.Second),
		),
	)
	step := StepConfig{Every: -1, Late: event.LatePolicy{After: 5 * time.Minute, Labels: true}}
	w := runWriter(t, b.nc)
	labels := func(from Resume) (int, Resume) {
		s := b.open(JetStreamConfig{UntilLast: true, Step: step, From: from})
		defer s.Close()
		var batch event.Batch
		if err := s.Next(testContext(t), &batch); err != nil {
			t.Fatal(err)
		}
		refuse(t, w, batch.Refused)
		return len(batch.Labels), resumeAfter(&batch)
	}
	n, at := labels(Resume{})
	entries := b.quarantined(QuarantineFilter{Reason: event.Late})
	if n != 2 || len(entries) != 1 || entries[0].Index != 0 {
		t.Fatalf("%d labels applied, quarantined %+v", n, entries)
	}
	q, err := OpenQuarantine(testContext(t), b.js, broker.DefaultStreamNames())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Retry(testContext(t), entries[0], Correction{}); err != nil {
		t.Fatal(err)
	}
	if n, _ := labels(at); n != 1 || len(b.quarantined(QuarantineFilter{})) != 0 {
		t.Errorf(
			"%d labels applied after the retry, quarantined %+v",
			n,
			b.quarantined(QuarantineFilter{}),
		)
	}
}
