package ingest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// step has the compared parts of a delivered step.
type step struct {
	First, Last      event.Position
	Time             event.Time
	Emit, Checkpoint bool
	Events           int
}

// cut runs units through a cutter as a source does.
func cut(t *testing.T, config StepConfig, from Resume, units []Unit, finite bool) []step {
	t.Helper()
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	var steps []step
	var b event.Batch
	c := NewCutter(config, from)
	deliver := func() {
		steps = append(steps, step{b.First, b.Last, b.Time, b.Emit, b.Checkpoint, c.events})
		c.Begin(&b)
	}
	c.Begin(&b)
	for _, u := range units {
		for offers := 0; ; offers++ {
			taken, complete := c.Offer(u)
			if complete {
				deliver()
			}
			if taken {
				break
			}
			if !complete || offers > 3 {
				t.Fatalf(
					"unit %d: not taken, complete %v, after %d offers", u.Position, complete,
					offers,
				)
			}
		}
	}
	for finite && c.Finish() {
		deliver()
	}
	return steps
}

func at(ms int) event.Time {
	return event.Time(1_700_000_000_000_000_000 + ms*int(time.Millisecond))
}

// stepCases are messages and the steps that they are cut into.
var stepCases = []struct {
	name  string
	units []Unit
	want  []step
}{
	{
		"count",
		[]Unit{{Position: 1, Time: at(0), Events: 6}, {Position: 2, Time: at(1), Events: 6}},
		[]step{{1, 2, at(1), false, false, 12}, {3, 2, at(1), true, false, 0}},
	},
	{
		"a message is never split",
		[]Unit{{Position: 1, Time: at(0), Events: 50}},
		[]step{{1, 1, at(0), false, false, 50}, {2, 1, at(0), true, false, 0}},
	},
	{
		"time without emission",
		[]Unit{{Position: 1, Time: at(50), Events: 1}, {Position: 2, Time: at(150), Events: 1}},
		[]step{{1, 1, at(50), false, false, 1}, {2, 2, at(150), true, false, 1}},
	},
	{
		"time with emission",
		[]Unit{{Position: 1, Time: at(150), Events: 1}, {Position: 2, Time: at(210), Events: 1}},
		[]step{{1, 1, at(150), true, false, 1}, {2, 2, at(210), true, false, 1}},
	},
	{
		"an emission that is due needs no events",
		[]Unit{{Position: 1, Time: at(150), Events: 10}, {Position: 2, Time: at(210), Events: 1}},
		[]step{
			{1, 1, at(150), false, false, 10},
			{2, 1, at(150), true, false, 0},
			{2, 2, at(210), true, false, 1},
		},
	},
	{
		"no second emission without events",
		[]Unit{
			{Position: 1, Time: at(150), Events: 1, Flush: true},
			{Position: 2, Time: at(210), Events: 1},
		},
		[]step{{1, 1, at(150), true, false, 1}, {2, 2, at(210), true, false, 1}},
	},
	{
		"an erasure is alone",
		[]Unit{
			{Position: 1, Time: at(0), Events: 1},
			{Position: 2, Time: at(1), Events: 1, Alone: true},
			{Position: 3, Time: at(2), Events: 1},
		},
		[]step{
			{1, 1, at(0), false, false, 1},
			{2, 2, at(1), false, false, 1},
			{3, 3, at(2), true, false, 1},
		},
	},
	{
		"an erasure after a boundary",
		[]Unit{
			{Position: 1, Time: at(150), Events: 1},
			{Position: 2, Time: at(350), Events: 1, Alone: true},
		},
		[]step{
			{1, 1, at(150), true, false, 1},
			{2, 2, at(350), false, false, 1},
			{3, 2, at(350), true, false, 0},
		},
	},
	{
		"checkpoint",
		[]Unit{
			{Position: 1, Time: at(0), Events: 1},
			{Position: 2, Time: at(1), Events: 1, Checkpoint: true},
		},
		[]step{{1, 2, at(1), false, true, 2}, {3, 2, at(1), true, false, 0}},
	},
	{
		"configure",
		[]Unit{
			{Position: 1, Time: at(0), Events: 1, Configure: true},
			{Position: 2, Time: at(1), Events: 1},
		},
		[]step{{1, 1, at(0), false, false, 1}, {2, 2, at(1), true, false, 1}},
	},
	{
		"log time never decreases",
		[]Unit{
			{Position: 1, Time: at(150), Events: 1},
			{Position: 2, Time: at(20), Events: 1},
			{Position: 3, Time: at(160), Events: 1},
		},
		[]step{{1, 3, at(160), true, false, 3}},
	},
	{
		"a message of refusals counts", slices.Repeat([]Unit{{Position: 1, Time: at(0)}}, 10),
		[]step{{1, 1, at(0), false, false, 10}, {2, 1, at(0), true, false, 0}},
	},
	{"nothing", nil, nil},
}

// A step must end where the contract says: by count, before a later multiple of
// every, around erasures, after control events, at the end; and only time, flush
// and the end emit.
func TestStepsEndByTheRule(t *testing.T) {
	const ms = time.Millisecond
	config := StepConfig{EventsMax: 10, Every: 100 * ms, EmitEvery: 200 * ms}
	for _, c := range stepCases {
		if got := cut(t, config, Resume{}, c.units, true); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

// Events without any time must be cut by count alone, and bytes end a step too.
func TestStepsWithoutTimesAndByBytes(t *testing.T) {
	var units []Unit
	for i := range 10 {
		units = append(units, Unit{Position: event.Position(i + 1), Events: 1, Bytes: 30})
	}
	got := cut(t, StepConfig{EventsMax: 4}, Resume{}, units, true)
	want := []step{
		{1, 4, 0, false, false, 4},
		{5, 8, 0, false, false, 4},
		{9, 10, 0, true, false, 2},
	}
	if !slices.Equal(got, want) {
		t.Errorf("by count: got %+v, want %+v", got, want)
	}
	got = cut(t, StepConfig{BytesMax: 100}, Resume{}, units[:4], true)
	want = []step{{1, 4, 0, false, false, 4}, {5, 4, 0, true, false, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("by bytes: got %+v, want %+v", got, want)
	}
}

// randomUnits is a log of every kind of unit, with clocks that go back.
func randomUnits(rng *rand.Rand, n int) []Unit {
	var units []Unit
	clock := rng.IntN(1000)
	for i := range n {
		clock += rng.IntN(60) - 10
		u := Unit{
			Position: event.Position(i + 1),
			Time:     at(clock),
			Events:   rng.IntN(5),
			Bytes:    rng.IntN(50),
		}
		switch rng.IntN(20) {
		case 0:
			u.Alone = true
		case 1:
			u.Flush = true
		case 2:
			u.Checkpoint = true
		case 3:
			u.Configure = true
		case 4:
			u.Time = 0
		}
		units = append(units, u)
	}
	return units
}

// A log that is taken up again after any of its steps must have the same steps as
// one that is read in one go.
func TestStepsAfterResumeEqualUninterruptedSteps(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		config := StepConfig{
			EventsMax: 1 + rng.IntN(20), Every: 50 * time.Millisecond,
			EmitEvery: time.Duration(1+rng.IntN(4)) * 50 * time.Millisecond,
		}
		units := randomUnits(rng, 120)
		whole := cut(t, config, Resume{}, units, true)
		for i, s := range whole {
			from := Resume{Position: s.Last, Time: s.Time, Emitted: s.Emit}
			rest := cut(t, config, from, units[s.Last:], true)
			if !slices.Equal(rest, whole[i+1:]) {
				t.Fatalf("seed %d, after step %d (%+v):\n got %s\nwant %s",
					seed, i, s, show(rest), show(whole[i+1:]))
			}
		}
	}
}

// Every position must be in exactly one step, in order, and log time must not go
// back. At most one step in a row is empty, and it emits.
func TestStepsCoverTheLog(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		units := randomUnits(rng, 200)
		var last event.Position
		var now event.Time
		for i, s := range cut(t, StepConfig{EventsMax: 7}, Resume{}, units, true) {
			if s.First != last+1 || s.Last < last || s.Time < now || (s.Last == last && !s.Emit) {
				t.Fatalf("seed %d step %d: %+v after position %d, time %d", seed, i, s, last, now)
			}
			last, now = s.Last, s.Time
		}
		if int(last) != len(units) {
			t.Fatalf("seed %d: steps end at %d of %d", seed, last, len(units))
		}
	}
}

func show(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "\n  %+v", s)
	}
	return b.String()
}

// Contradictory configurations must be refused with all that is wrong.
func TestStepConfigReportsEveryViolation(t *testing.T) {
	err := StepConfig{
		EventsMax: -1, BytesMax: -1, EmitEvery: 250 * time.Millisecond, Time: 9,
	}.Validate()
	for _, want := range []string{"events_max", "bytes_max", "emit_every", "step.time"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if err := (StepConfig{}).Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

// resumeAfter returns how to go on after the step b.
func resumeAfter(b *event.Batch) Resume {
	return Resume{Position: b.Last, Time: b.Time, Emitted: b.Emit}
}
