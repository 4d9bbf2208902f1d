package ingest

import (
	"errors"
	"fmt"
	"time"

	"gqlstream/ingest/event"
)

// TimeMode says where the log's time comes from.
type TimeMode uint8

const (
	// ReceivedTime is the broker's timestamp of a message, made non-decreasing.
	ReceivedTime TimeMode = iota
	// EventTime is the largest event time so far; events that give no time do not
	// move it. One event with a time far in the future moves it there for good.
	EventTime
)

// Defaults of StepConfig.
const (
	stepEventsMaxDefault = 4096
	stepEveryDefault     = 100 * time.Millisecond
	stepBytesMaxDefault  = 64 << 20
)

// StepConfig says how a log is cut into steps. The zero value is the default.
type StepConfig struct {
	EventsMax int           // a step ends after the message that brings it here; 0: 4096
	BytesMax  int           // the same for bytes of message payload; 0: 64 MiB
	Every     time.Duration // a step ends before a later multiple of this; 0: 100 ms; < 0: never
	EmitEvery time.Duration // a time ending emits at multiples of this; a multiple of Every; 0: Every
	Time      TimeMode      // the zero value is ReceivedTime

	Late event.LatePolicy // of events whose own time is far behind the log's
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
	if c.EventsMax == 0 {
		c.EventsMax = stepEventsMaxDefault
	}
	if c.BytesMax == 0 {
		c.BytesMax = stepBytesMaxDefault
	}
	if c.Every == 0 {
		c.Every = stepEveryDefault
	}
	if c.EmitEvery == 0 {
		c.EmitEvery = c.Every
	}
	return c
}

// Resume says where a log is taken up again: right after the step that a batch
// described by its Last, Time and Emit. The zero value is the beginning.
type Resume struct {
	Position event.Position // the last position that was applied
	Time     event.Time     // the log's time there
	Emitted  bool           // that step ended in an emission
}

// unit is what the cutter needs to know of one message, or of one row of a file.
type unit struct {
	Position   event.Position
	Time       event.Time // received, or the largest of its events; 0: none
	Events     int        // accepted and refused; a unit without any counts as one
	Bytes      int        // of payload that the batch keeps alive
	Alone      bool       // holds an erasure: a step of its own
	Flush      bool
	Checkpoint bool
	Configure  bool
}

// cutter decides where steps end. It is a function of the sequence of units and
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
// Use: begin, then offer units until one of them completes the step, then begin
// again; a unit that was not taken is offered again first. The batch is filled
// by the caller and stamped by the cutter.
type cutter struct {
	config StepConfig

	last    event.Position // of the last unit taken
	time    event.Time     // log time of the last unit taken
	clock   event.Time     // log time up to which boundaries were seen; >= time
	started bool           // some unit, or Resume, had a time
	emitted bool           // the last step ended in an emission

	batch         *event.Batch
	units         int // in the step being filled
	events, bytes int
}

func newCutter(config StepConfig, from Resume) *cutter {
	return &cutter{
		config: config.WithDefaults(), last: from.Position, time: from.Time, clock: from.Time,
		started: from.Time != 0, emitted: from.Emitted || from.Position == 0,
	}
}

// begin resets b and starts the next step in it.
func (c *cutter) begin(b *event.Batch) {
	b.Reset()
	b.First, b.Last, b.Time = c.last+1, c.last, c.time
	c.batch, c.units, c.events, c.bytes = b, 0, 0, 0
}

// now returns the log's time when a message comes that was received at t: by it,
// events are late. In a log cut by event time, where t is 0, it is the largest time
// before the message, so that no event is late for one beside it. It does not
// depend on where steps end.
func (c *cutter) now(t event.Time) event.Time {
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
func (c *cutter) crosses(t event.Time) bool {
	return c.started && t > c.clock && later(c.clock, t, c.config.Every) &&
		(c.units > 0 || c.owes(t))
}

// owes reports whether a boundary of EmitEvery lies between now and t and the
// last step did not emit.
func (c *cutter) owes(t event.Time) bool {
	return !c.emitted && later(c.clock, t, c.config.EmitEvery)
}

// offer reports whether u belongs to the step being filled, and whether the
// step is complete. If it is complete and u was not taken, u is the first to be
// offered to the next step, and what the caller has put of it into the batch must
// be taken out again.
func (c *cutter) offer(u unit) (taken, complete bool) {
	if c.crosses(u.Time) {
		emit := later(c.clock, u.Time, c.config.EmitEvery)
		c.clock = u.Time
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
		c.batch.Checkpoint = u.Checkpoint
		c.end(u.Flush)
		return true, true
	}
	return true, false
}

// finish ends the step at the end of a finite source. It reports whether there
// is a step to deliver; if not, the source is exhausted.
func (c *cutter) finish() bool {
	if c.units == 0 && c.emitted {
		return false
	}
	c.end(true)
	return true
}

func (c *cutter) take(u unit) {
	if u.Time != 0 {
		if !c.started || u.Time > c.clock {
			c.clock = u.Time
		}
		c.started = true
		c.time = c.clock
	}
	c.last = u.Position
	c.units++
	c.events += max(u.Events, 1)
	c.bytes += u.Bytes
	c.batch.Last, c.batch.Time = c.last, c.time
}

func (c *cutter) end(emit bool) {
	c.batch.Emit = emit
	c.emitted = emit
}

// later reports whether t lies in a later multiple of every than from.
func later(from, t event.Time, every time.Duration) bool {
	return every > 0 && floorDiv(int64(t), int64(every)) > floorDiv(int64(from), int64(every))
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
