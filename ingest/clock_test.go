package ingest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/ingest/event"
)

// leapingClock returns when messages are received, one every 10 ms for 30 s, by a clock
// that is an hour wrong from the 10th to the 20th second.
func leapingClock(wrong time.Duration) (received []time.Time) {
	begun := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < 30*time.Second; at += 10 * time.Millisecond {
		shown := begun.Add(at)
		if at >= 10*time.Second && at < 20*time.Second {
			shown = shown.Add(wrong)
		}
		received = append(received, shown)
	}
	return received
}

// cutByClock returns the positions at which a log with these times of receipt emits.
func cutByClock(received []time.Time) (emitted []string) {
	clock, cutter := logClock{}, NewCutter(StepConfig{}, Resume{})
	var batch event.Batch
	cutter.Begin(&batch)
	for i, at := range received {
		u := Unit{
			Position: event.Position(i + 1), Time: clock.advance(at),
			Received: event.Time(at.UnixNano()), Events: 1,
		}
		for taken := false; !taken; {
			var complete bool
			if taken, complete = cutter.Offer(u); complete {
				if batch.Emit {
					emitted = append(emitted, fmt.Sprint(batch.Last, batch.Time))
				}
				cutter.Begin(&batch)
			}
		}
	}
	return emitted
}

// A clock of the broker that leaps an hour and is set right again, in either direction,
// must hold no estimate up for more than a second.
func TestALeapingClockDelaysNothing(t *testing.T) {
	for _, wrong := range []time.Duration{time.Hour, -time.Hour, 0} {
		received := leapingClock(wrong)
		emitted := cutByClock(received)
		last := 0
		for _, text := range append(emitted, fmt.Sprint(len(received))) {
			var position int
			fmt.Sscan(text, &position)
			if position-last > 100 { // a second
				t.Errorf(
					"clock wrong by %v: nothing is emitted from %d to %d", wrong, last, position,
				)
			}
			last = position
		}
	}
}

// Where the broker's clock never goes back, log time must be the broker's; where it does, log time
// must stand until that has caught up, and the source must say by how much it is ahead.
func TestLogTimeIsTheBrokersWhileThatGoesForward(t *testing.T) {
	for wrong, want := range map[time.Duration]time.Duration{
		0:         0,
		time.Hour: time.Hour - 10*time.Second, -time.Hour: 0,
	} {
		var clock logClock
		before := event.Time(0)
		for i, at := range leapingClock(wrong) {
			now := clock.advance(at)
			if now < before {
				t.Fatalf("clock wrong by %v: log time goes back at message %d", wrong, i)
			}
			if before = now; wrong == 0 && now != event.Time(at.UnixNano()) {
				t.Fatalf("message %d: log time %v, received %v", i, now, at)
			}
		}
		if got := clock.ahead(time.Now()).Round(time.Second); got != want {
			t.Errorf("clock wrong by %v: %v ahead, want %v", wrong, got, want)
		}
	}
}

// While the broker's clock is an hour ahead of ours, the log's time must be said to be.
func TestALogOfAClockThatLeapsIsAhead(t *testing.T) {
	for _, wrong := range []time.Duration{time.Hour, -time.Hour, 0} {
		var clock logClock
		most := time.Duration(0)
		for i, at := range leapingClock(wrong) {
			clock.advance(at)
			most = max(most, clock.ahead(leapingClock(0)[i]))
		}
		if (most.Round(time.Minute) == time.Hour) != (wrong != 0) {
			t.Errorf("clock wrong by %v: at most %v ahead", wrong, most)
		}
	}
}

// A source that is opened again after any message must read the same log times from
// there on.
func TestLogTimeOutlivesRestarts(t *testing.T) {
	received := leapingClock(time.Hour)
	var whole logClock
	var times []event.Time
	for _, at := range received {
		times = append(times, whole.advance(at))
	}
	for _, i := range []int{0, 500, 999, 1000, 1500, 1999, 2000, 2500} {
		clock := logClock{time: times[i]}
		clock.setFirst(received[i])
		for k := i + 1; k < len(received); k++ {
			if got := clock.advance(received[k]); got != times[k] {
				t.Fatalf("after a restart at %d message %d is at %v, was %v", i, k, got, times[k])
			}
		}
	}
}

// In event time an event within late.ahead moves the log's time there, and nothing ends before
// others come as far: the source must say so, before a step does.
func TestAnEventAheadWithinTheBoundIsReported(t *testing.T) {
	b := startBroker(t, "")
	now := time.Now()
	b.publish(
		event.KindEdge,
		fmt.Sprintf(`{"src":1,"dst":2,"time":%d}`, now.Add(50*time.Minute).Unix()),
	)
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Time: EventTime}})
	var batch event.Batch
	if err := s.Next(testContext(t), &batch); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats().Ahead.Round(10 * time.Minute); got != 50*time.Minute {
		t.Errorf("%v ahead", s.Stats().Ahead)
	}
}

// In event time an event from the next century must be refused by itself, and move
// nothing.
func TestAnEventFarAheadIsRefusedAlone(t *testing.T) {
	b := startBroker(t, "")
	now := time.Now().Unix()
	b.publish(
		event.KindEdge,
		fmt.Sprintf(
			`[{"src":1,"dst":2,"time":%d},{"src":1,"dst":3,"time":4576000000},{"src":1,"dst":4,`+
				`"time":%d}]`,
			now,
			now+1,
		),
	)
	b.publish(event.KindVertex, `{"vertex":9,"attributes":{"a":1},"time":4576000000}`)
	b.publish(event.KindControl, `{"op":"tick","time":4576000000}`)
	b.publish(event.KindEdge, fmt.Sprintf(`{"src":2,"dst":3,"time":%d}`, now+2))
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Time: EventTime, Every: -1}})
	var batch event.Batch
	if err := s.Next(testContext(t), &batch); err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, r := range batch.Refused {
		refused = append(refused, fmt.Sprintf("%d/%d %s", r.Position, r.Index, r.Reason))
	}
	if want := []string{"1/1 ahead", "2/0 ahead", "3/0 ahead"}; !slices.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
	if len(batch.Edges) != 3 || len(batch.Vertices) != 0 || batch.Time != event.Time(now+2)*1e9 {
		t.Errorf(
			"%d edges, %d vertices, log time %v", len(batch.Edges), len(batch.Vertices), batch.Time,
		)
	}
}

// While log time stands still, batches must carry the time of receipt as the clock for
// expiry. Otherwise they must carry no clock. The same must hold for a restart after any
// step.
func TestAssertionsEndByTheBrokersClock(t *testing.T) {
	for _, wrong := range []time.Duration{24 * time.Hour, -24 * time.Hour, 0} {
		var clock logClock
		var units []Unit
		for i, at := range leapingClock(wrong) {
			units = append(units, Unit{
				Position: event.Position(i + 1), Time: clock.advance(at),
				Received: event.Time(at.UnixNano()),
			})
		}
		steps := func(from Resume) (list []event.Batch) {
			c := NewCutter(StepConfig{}, from)
			var b event.Batch
			c.Begin(&b)
			for _, u := range units[from.Position:] {
				for {
					taken, complete := c.Offer(u)
					if complete {
						list = append(list, event.Batch{
							First: b.First, Last: b.Last, Time: b.Time,
							EndsBy: b.EndsBy, Emit: b.Emit,
						})
						c.Begin(&b)
					}
					if taken {
						break
					}
				}
			}
			return list
		}
		whole, stood := steps(Resume{}), 0
		for i, b := range whole {
			want := units[b.Last-1].Received
			if want == units[b.Last-1].Time {
				want = 0
			} else {
				stood++
			}
			if b.EndsBy != want {
				t.Fatalf("clock wrong by %v, step %d: assertions end by %v, want %v", wrong, i,
					b.EndsBy, want)
			}
			if i%37 != 0 {
				continue
			}
			rest := steps(Resume{Position: b.Last, Time: b.Time, Emitted: b.Emit, Clock: b.EndsBy})
			if diff := cmp.Diff(whole[i+1:], rest,
				cmpopts.IgnoreUnexported(event.Batch{})); diff != "" {
				t.Fatalf("clock wrong by %v, after step %d: %s", wrong, i, diff)
			}
		}
		if (stood > 0) != (wrong != 0) {
			t.Errorf("clock wrong by %v: log time stood in %d of %d steps", wrong, stood,
				len(whole))
		}
	}
}

// A clock event that is published once the clock is right again sets log time to its own receipt,
// in a step of its own that emits. From there on log time is the broker's, also after a restart
// behind any step.
func TestAClockEventSetsLogTime(t *testing.T) {
	const event1 = 2100 // of 3,000; the clock is right again from 2,000 on
	for _, wrong := range []time.Duration{24 * time.Hour, -24 * time.Hour, 0} {
		received := leapingClock(wrong)
		unit := func(clock *logClock, i int) Unit {
			u := Unit{
				Position: event.Position(i + 1), Time: clock.advance(received[i]),
				Received: event.Time(received[i].UnixNano()),
			}
			if i == event1 {
				u.Alone, u.SetClock, u.Flush = true, true, true
			}
			return u
		}
		steps := func(from Resume, at time.Time) (list []event.Batch) {
			clock := logClock{time: from.Time}
			clock.setFirst(at)
			c := NewCutter(StepConfig{}, from)
			var b event.Batch
			c.Begin(&b)
			for i := int(from.Position); i < len(received); i++ {
				u := unit(&clock, i)
				for {
					taken, complete := c.Offer(u)
					if taken && u.SetClock {
						clock.set(received[i])
					}
					if complete {
						list = append(
							list,
							event.Batch{
								First:  b.First,
								Last:   b.Last,
								Time:   b.Time,
								EndsBy: b.EndsBy,
								Emit:   b.Emit,
							},
						)
						c.Begin(&b)
					}
					if taken {
						break
					}
				}
			}
			return list
		}
		whole := steps(Resume{}, time.Time{})
		for i, b := range whole {
			at := event.Time(received[b.Last-1].UnixNano())
			switch {
			case b.Last > event1 && (b.Time != at || b.EndsBy != 0):
				t.Fatalf(
					"clock wrong by %v: log time is %v (%v) after the clock event, want %v", wrong,
					b.Time, b.EndsBy, at,
				)
			case b.Last == event1+1 && (b.First != b.Last || !b.Emit):
				t.Fatalf(
					"clock wrong by %v: the step of the event is %d to %d, emits %v", wrong,
					b.First, b.Last, b.Emit,
				)
			}
			if i%37 == 0 || b.Last == event1 || b.Last == event1+1 {
				rest := steps(
					Resume{Position: b.Last, Time: b.Time, Emitted: b.Emit, Clock: b.EndsBy},
					received[b.Last-1],
				)
				hidden := cmpopts.IgnoreUnexported(event.Batch{})
				if diff := cmp.Diff(whole[i+1:], rest, hidden); diff != "" {
					t.Fatalf("clock wrong by %v, after step %d: %s", wrong, i, diff)
				}
			}
		}
	}
}

// Where log time is event time, a clock event sets it to the event's own time, and needs one.
func TestAClockEventInEventTime(t *testing.T) {
	b := startBroker(t, "")
	now := time.Now().Unix()
	b.publish(event.KindEdge, fmt.Sprintf(`{"src":1,"dst":2,"time":%d}`, now+3000))
	b.publish(event.KindControl, `{"op":"clock"}`)
	b.publish(event.KindControl, fmt.Sprintf(`{"op":"clock","time":%d}`, now))
	b.publish(event.KindEdge, fmt.Sprintf(`{"src":2,"dst":3,"time":%d}`, now+1))
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Time: EventTime}})
	var times []event.Time
	refused := 0
	var batch event.Batch
	for s.Next(testContext(t), &batch) == nil {
		times = append(times, batch.Time/1e9-event.Time(now))
		refused += len(batch.Refused)
	}
	if want := []event.Time{3000, 0, 1}; !slices.Equal(slices.Compact(times), want) ||
		refused != 1 {
		t.Errorf("log times %v, %d refused; want %v and 1", times, refused, want)
	}
}
