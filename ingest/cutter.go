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
	// ReceivedTime is the broker's timestamp of a message; where that goes back, log time
	// stands still until it has caught up.
	ReceivedTime TimeMode = iota
	// EventTime is the largest event time so far; events that give no time do not
	// move it, and none moves it further than StepConfig.Ahead beyond its message's.
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
	EventsMax int           // a step ends after the message that brings it here; 0: 4096
	BytesMax  int           // the same for bytes of message payload; 0: 64 MiB
	Every     time.Duration // a step ends before a later multiple of this; 0: 100 ms; < 0: never
	// a time ending emits at multiples of this; a multiple of Every; 0: Every
	EmitEvery time.Duration
	Time      TimeMode // the zero value is ReceivedTime

	Late event.LatePolicy // of events whose own time is far behind the log's

	// Ahead bounds the lead of an event's own time over the receipt of its message in a log cut by
	// event time, where one event of the next century would end every estimate until then. 0: an
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

// Cut names what decides a log's times and emissions, for the digest of a configuration; "" is the
// default.
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

// Resume is the place at which a log is taken up again: right after the step that a batch
// described by its Last, Time and Emit. The zero value is the beginning.
type Resume struct {
	Position event.Position // the last position that was applied
	Time     event.Time     // the log's time there
	Emitted  bool           // that step ended in an emission
}

// Unit is the part of one message, or of one row of a file, that the cutter needs.
type Unit struct {
	Position   event.Position
	Time       event.Time // received, or the largest of its events; 0: none
	Received   event.Time // by which steps are cut where the log's time stands still; 0: by Time
	Events     int        // accepted and refused; a unit without any counts as one
	Bytes      int        // of payload that the batch keeps alive
	Alone      bool       // holds an erasure: a step of its own
	Flush      bool
	Checkpoint bool
	Configure  bool
}

// Cutter decides where steps end. It is a function of the sequence of units and
// of nothing else: not of how they were fetched, nor of any clock. A step ends
//
//   - before a unit whose log time lies in a later multiple of Every; this emits
//     if a multiple of EmitEvery lies between as well;
//   - before and after a unit that holds an erasure;
//   - after a unit with a flush (emits), a checkpoint or a configure;
//   - after the unit that brings it to EventsMax events or BytesMax bytes;
//   - at the end of a finite source (emits).
//
// When an emission is due and the step is empty, because the step before ended by
// count or by control without emitting, the cutter yields a step without units
// (First = Last+1) whose Emit is set. So nothing waits for later events, and a
// record at position p holds exactly the events up to p.
//
// Use: Begin, then Offer units until one of them completes the step, then Begin
// again; a unit that was not taken is offered again first. The batch is filled
// by the caller and stamped by the cutter.
type Cutter struct {
	config StepConfig

	last event.Position // of the last unit taken
	time event.Time     // log time of the last unit taken
	// time up to which boundaries were seen; below time while that stands still
	clock   event.Time
	started bool // some unit, or Resume, had a time
	emitted bool // the last step ended in an emission

	batch         *event.Batch
	units         int // in the step being filled
	events, bytes int
}

// NewCutter returns a cutter of a log that is taken up after from.
func NewCutter(config StepConfig, from Resume) *Cutter {
	return &Cutter{
		config: config.WithDefaults(), last: from.Position, time: from.Time, clock: from.Time,
		started: from.Time != 0, emitted: from.Emitted || from.Position == 0,
	}
}

// Begin resets b and starts the next step in it.
func (c *Cutter) Begin(b *event.Batch) {
	b.Reset()
	b.First = c.last + 1
	b.Last = c.last
	b.Time = c.time
	c.batch = b
	c.units = 0
	c.events = 0
	c.bytes = 0
}

// Now returns the log's time when a message comes that was received at t: by it, events are late.
// In a log cut by event time, where t is 0, it is the largest time before the message, so that no
// event is late for one beside it. It does not depend on where steps end.
func (c *Cutter) Now(t event.Time) event.Time {
	if !c.started {
		return t
	}
	if t == 0 {
		return c.time
	}
	return max(c.time, t)
}

// crosses reports whether a unit of time t would end the step before itself by
// time alone. With it, ReceivedTime sources need not decode a message in vain.
func (c *Cutter) crosses(t event.Time) bool {
	return c.started && t > c.clock && later(c.clock, t, c.config.Every) &&
		(c.units > 0 || !c.emitted && later(c.clock, t, c.config.EmitEvery))
}

// Offer reports whether u belongs to the step being filled, and whether the step is complete. If it
// is complete and u was not taken, u is the first to be offered to the next step, and what the
// caller has put of it into the batch must be taken out again.
func (c *Cutter) Offer(u Unit) (taken, complete bool) {
	if at := u.cut(); c.crosses(at) {
		emit := later(c.clock, at, c.config.EmitEvery)
		c.clock = at
		c.end(emit)
		return false, true
	}
	if u.Alone && c.units > 0 {
		c.end(false)
		return false, true
	}
	c.take(u)
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

func (c *Cutter) take(u Unit) {
	if at := u.cut(); at != 0 {
		if !c.started || at > c.clock || u.Received != 0 {
			c.clock = at
		}
		c.time = max(c.time, u.Time)
		if !c.started {
			c.time = u.Time // which may be before 1970
		}
		c.started = true
	}
	c.last = u.Position
	c.units++
	c.events += max(u.Events, 1)
	c.bytes += u.Bytes
	c.batch.Last, c.batch.Time = c.last, c.time
}

// cut returns the time by which steps are cut.
func (u *Unit) cut() event.Time { return cmp.Or(u.Received, u.Time) }

func (c *Cutter) end(emit bool) {
	c.batch.Emit = emit
	c.emitted = emit
}

// later reports whether t lies in a later multiple of every than from.
func later(from, t event.Time, every time.Duration) bool {
	floor := func(t event.Time) event.Time {
		return t - (t%event.Time(every)+event.Time(every))%event.Time(every)
	}
	return every > 0 && floor(t) > floor(from)
}

// UnitSince sums up what was added to b since the mark. Its Time is the largest
// event time; in received mode the caller sets it to the message's time instead.
func UnitSince(m event.Mark, b *event.Batch, mode TimeMode) Unit {
	u := Unit{Events: event.CountRefused(b.Refused[m.Refused:])}
	for k, from := range m.Count {
		u.Events += b.Count(event.Kind(k)) - from
		for i := from; mode == EventTime && i < b.Count(event.Kind(k)); i++ {
			if _, t := b.Stamp(event.Kind(k), i); t != 0 && (u.Time == 0 || t > u.Time) {
				u.Time = t
			}
		}
	}
	for _, v := range b.Vertices[m.Count[event.KindVertex]:] {
		u.Alone = u.Alone || v.Erase
	}
	for _, c := range b.Controls[m.Count[event.KindControl]:] {
		u.Flush = u.Flush || c.Op == event.Flush || c.Op == event.Note
		u.Checkpoint = u.Checkpoint || c.Op == event.Checkpoint
		u.Configure = u.Configure || c.Op == event.Configure
	}
	return u
}

// holdsMoreThanTicks reports whether something that can change an estimate was added to b since the
// mark.
func holdsMoreThanTicks(m event.Mark, b *event.Batch) bool {
	for _, c := range b.Controls[m.Count[event.KindControl]:] {
		if c.Op != event.Tick {
			return true
		}
	}
	m.Count[event.KindControl] = len(b.Controls)
	return b.Mark().Count != m.Count
}

// Source delivers a log as steps.
type Source interface {
	// Next resets b and fills it with the next step. It returns io.EOF, with an empty batch, after
	// the last step of a finite source. b stays valid until the next call. An error that is not
	// io.EOF names the position and is final.
	Next(ctx context.Context, b *event.Batch) error
	Close() error
}
