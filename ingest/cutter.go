package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gqlstream/ingest/event"
)

// TimeMode names the source of the log's time.
type TimeMode uint8

const (
	// ReceivedTime is the broker's timestamp of a message. If that goes back, log time stands still
	// until the timestamps have caught up.
	ReceivedTime TimeMode = iota
	// EventTime is the largest event time so far. Events without a time do not move it, and no
	// event moves it more than StepConfig.Ahead beyond the receipt of its message.
	EventTime
)

// Defaults of StepConfig.
const (
	stepEventsMaxDefault = 4096
	StepEveryDefault     = 100 * time.Millisecond
	stepBytesMaxDefault  = 64 << 20
	stepAheadDefault     = time.Hour
)

// StepConfig configures how a log is cut into steps. The zero value is the default.
type StepConfig struct {
	EventsMax int           // a step ends after the message that reaches this number; 0: 4096
	BytesMax  int           // the same for bytes of message payload; 0: 64 MiB
	Every     time.Duration // a step ends before a later multiple of this; 0: 100 ms; < 0: never
	// EmitEvery: a step that ends by time emits at multiples of this, itself a multiple of Every;
	// 0: Every; a run sets a second
	EmitEvery time.Duration
	Time      TimeMode // the zero value is ReceivedTime

	Late event.LatePolicy // how to treat events whose own time is far behind the log's

	// Ahead bounds how far an event's own time may lie after the receipt of its message, in a log
	// cut by event time: one event of the next century would end every estimate until then. 0: an
	// hour; < 0: no bound.
	Ahead time.Duration
}

// Validate reports every violation at once.
func (c StepConfig) Validate() error {
	var errs []error
	if c.EventsMax < 0 {
		errs = append(errs, fmt.Errorf("step.events_max: %d is negative", c.EventsMax))
	}
	if c.BytesMax < 0 {
		errs = append(errs, fmt.Errorf("step.bytes_max: %d is negative", c.BytesMax))
	}
	if c.EmitEvery < 0 {
		errs = append(errs, fmt.Errorf("step.emit_every: %v is negative", c.EmitEvery))
	}
	if c.Time > EventTime {
		errs = append(errs, fmt.Errorf("step.time: unknown mode %d", c.Time))
	}
	if err := c.Late.Validate(); err != nil {
		errs = append(errs, err)
	}
	if d := c.WithDefaults(); d.Every > 0 && d.EmitEvery%d.Every != 0 {
		errs = append(errs, fmt.Errorf("step.emit_every: %v is not a multiple of step.every, %v",
			d.EmitEvery, d.Every))
	}
	return errors.Join(errs...)
}

// WithDefaults returns the configuration with every zero replaced.
func (c StepConfig) WithDefaults() StepConfig {
	c.EventsMax, c.BytesMax = cmp.Or(c.EventsMax,
		stepEventsMaxDefault), cmp.Or(c.BytesMax, stepBytesMaxDefault)
	c.Every = cmp.Or(c.Every, StepEveryDefault)
	c.EmitEvery, c.Ahead = cmp.Or(c.EmitEvery, c.Every), cmp.Or(c.Ahead, stepAheadDefault)
	return c
}

// Cut describes the settings that decide a log's times and emissions, for the digest of a
// configuration; the default is "".
func (c StepConfig) Cut() string {
	c = c.WithDefaults()
	switch {
	case c.Time == EventTime:
		return fmt.Sprintf("%v %v of event time, %v ahead", c.Every, c.EmitEvery, c.Ahead)
	case c.Every != StepEveryDefault || c.EmitEvery != StepEveryDefault:
		return fmt.Sprintf("%v %v", c.Every, c.EmitEvery)
	}
	return ""
}

// Resume is the place where reading a log continues: right after the step of a batch with this
// Last, Time and Emit. The zero value is the beginning.
type Resume struct {
	Position event.Position // the last position that was applied
	Time     event.Time     // the log's time there
	Emitted  bool           // that step ended in an emission
	Clock    event.Time     // the batch's Clock there
}

// Unit summarises one message, or one row of a file, for the cutter.
type Unit struct {
	Position   event.Position
	Time       event.Time // received, or the largest of its events; 0: none
	Received   event.Time // time that cuts steps while the log's time stands still; 0: Time
	Events     int        // accepted and refused; a unit without events counts as one
	Bytes      int        // of payload that the batch keeps alive
	Alone      bool       // has an erasure or sets the clock, and gets a step of its own
	SetClock   bool       // log time becomes that of the unit, even if it is earlier
	Flush      bool
	Checkpoint bool
	Configure  bool
}

// Cutter decides where steps end. The result depends on the sequence of units alone, not on a clock
// or on the sizes of fetches. A step ends
//
//   - before a unit whose log time lies in a later multiple of Every; this emits
//     if a multiple of EmitEvery lies between as well;
//   - before and after a unit that holds an erasure or sets the clock (the latter emits);
//   - after a unit with a flush (emits), a checkpoint or a configure;
//   - after the unit that brings it to EventsMax events or BytesMax bytes;
//   - at the end of a finite source (emits).
//
// When an emission is due and the step is empty, because the step before ended by
// count or by control without emitting, the cutter yields a step without units
// (First = Last+1) whose Emit is set. So nothing waits for later events, and a
// record at position p holds exactly the events up to p.
//
// Use: call Begin, then Offer units until one completes the step, then Begin again. Offer a unit
// that was not taken again, first. The caller fills the batch; the cutter sets its times and marks.
type Cutter struct {
	config StepConfig

	last event.Position // of the last unit taken
	time event.Time     // log time of the last unit taken
	// boundary is the time up to which boundaries were seen; it is below time while time stands
	// still
	boundary event.Time
	received event.Time // of the last unit taken; 0: its log time
	started  bool       // a unit, or Resume, had a time
	emitted  bool       // the last step ended in an emission

	batch         *event.Batch
	units         int // units in the current step
	events, bytes int
}

// NewCutter returns a cutter of a log that continues after from.
func NewCutter(config StepConfig, from Resume) *Cutter {
	return &Cutter{
		config: config.WithDefaults(), last: from.Position, time: from.Time,
		boundary: cmp.Or(from.Clock, from.Time), received: from.Clock,
		started: from.Time != 0, emitted: from.Emitted || from.Position == 0,
	}
}

// Begin resets b and starts the next step in it.
func (c *Cutter) Begin(b *event.Batch) {
	b.Reset()
	b.First = c.last + 1
	b.Last = c.last
	b.Time = c.time
	b.EndsBy = c.ending()
	c.batch = b
	c.units = 0
	c.events = 0
	c.bytes = 0
}

// Now returns the log's time for a message received at t; it decides whether events are late. In a
// log cut by event time, where t is 0, it is the largest time before the message, so that no event
// makes another event of its message late. It does not depend on where steps end.
func (c *Cutter) Now(t event.Time) event.Time {
	if !c.started {
		return t
	}
	if t == 0 {
		return c.time
	}
	return max(c.time, t)
}

// crosses reports whether a unit of time t ends the step before itself, by time alone. Sources cut
// by ReceivedTime call it to avoid decoding a message twice.
func (c *Cutter) crosses(t event.Time) bool {
	return c.started && t > c.boundary && later(c.boundary, t, c.config.Every) &&
		(c.units > 0 || !c.emitted && later(c.boundary, t, c.config.EmitEvery))
}

// Offer reports whether u belongs to the current step, and whether the step is complete. If the
// step is complete without u, the caller removes the events of u from the batch again and offers u
// first to the next step.
func (c *Cutter) Offer(u Unit) (taken, complete bool) {
	if at := u.cut(); c.crosses(at) {
		emit := later(c.boundary, at, c.config.EmitEvery)
		c.boundary = at
		c.end(emit)
		return false, true
	}
	if u.Alone && c.units > 0 {
		c.end(false)
		return false, true
	}
	c.accept(u)
	if u.Alone || u.Flush || u.Checkpoint || u.Configure ||
		c.events >= c.config.EventsMax || c.bytes >= c.config.BytesMax {
		c.batch.Checkpoint, c.batch.EmitAll = u.Checkpoint, u.Flush
		c.end(u.Flush)
		return true, true
	}
	return true, false
}

// Finish ends the step at the end of a finite source. It reports whether there
// is a step to deliver; if not, the source is exhausted.
func (c *Cutter) Finish() bool {
	if c.units == 0 && c.emitted {
		return false
	}
	c.end(true)
	return true
}

func (c *Cutter) accept(u Unit) {
	if at := u.cut(); at != 0 {
		if !c.started || at > c.boundary || u.Received != 0 || u.SetClock {
			c.boundary = at
		}
		c.time = max(c.time, u.Time)
		if !c.started {
			c.time = u.Time // may be before 1970
		}
		if u.SetClock {
			c.time = at
		}
		c.started = true
		c.received = u.Received
	}
	c.last = u.Position
	c.units++
	c.events += max(u.Events, 1)
	c.bytes += u.Bytes
	c.batch.Last, c.batch.Time, c.batch.EndsBy = c.last, c.time, c.ending()
}

// ending returns the time by which assertions end, 0 if it is the log's.
func (c *Cutter) ending() event.Time {
	if c.received < c.time {
		return c.received
	}
	return 0
}

// cut returns the time that cuts steps.
func (u *Unit) cut() event.Time { return cmp.Or(u.Received, u.Time) }

func (c *Cutter) end(emit bool) {
	c.batch.Emit = emit
	c.emitted = emit
}

// later reports whether t and from lie in different multiples of every, t in the later one.
func later(from, t event.Time, every time.Duration) bool {
	floor := func(t event.Time) event.Time {
		return t - (t%event.Time(every)+event.Time(every))%event.Time(every)
	}
	return every > 0 && floor(t) > floor(from)
}

// UnitSince sums up the events added to b since the mark. Its Time is the largest event time; with
// ReceivedTime the caller replaces it by the message's time.
func UnitSince(m event.Counts, b *event.Batch, mode TimeMode) Unit {
	u := Unit{Events: event.CountRefused(b.Refused[m.Refused:])}
	for k, from := range m.Count {
		to := b.Count(event.Kind(k))
		u.Events += to - from
		for i := from; mode == EventTime && i < to; i++ {
			if _, t := b.Stamp(event.Kind(k), i); t != 0 && (u.Time == 0 || t > u.Time) {
				u.Time = t
			}
		}
	}
	for _, v := range b.Vertices[m.Count[event.KindVertex]:] {
		u.Alone = u.Alone || v.Erase
	}
	for _, c := range b.Controls[m.Count[event.KindControl]:] {
		u.SetClock = u.SetClock || c.Op == event.SetClock
		u.Alone = u.Alone || u.SetClock
		u.Flush = u.Flush || u.SetClock || c.Op == event.Flush || c.Op == event.Note
		u.Checkpoint = u.Checkpoint || c.Op == event.Checkpoint
		u.Configure = u.Configure || c.Op == event.Configure || c.Op == event.Recompute
	}
	return u
}

// holdsMoreThanTicks reports whether b got anything since the mark that can change an estimate.
func holdsMoreThanTicks(m event.Counts, b *event.Batch) bool {
	for _, c := range b.Controls[m.Count[event.KindControl]:] {
		if c.Op != event.Tick {
			return true
		}
	}
	m.Count[event.KindControl] = len(b.Controls)
	return b.Counts().Count != m.Count
}

// Source delivers a log as steps.
type Source interface {
	// Next resets b and fills it with the next step. It returns io.EOF, with an empty batch, after
	// the last step of a finite source. b stays valid until the next call. An error that is not
	// io.EOF names the position and is final.
	Next(ctx context.Context, b *event.Batch) error
	Close() error
}
