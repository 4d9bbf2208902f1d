package ingest

import (
	"time"

	"gqlstream/ingest/event"
)

// logClock is the log's time by the broker's. It advances by the differences between the
// times at which messages were received, and stands still where the broker's clock goes
// back: a clock that leapt an hour ahead and is set right again leaves the log's an hour
// ahead for good, and stops nothing. Where the broker's never goes back both are equal.
type logClock struct {
	received time.Time // of the last message; zero: none is known
	time     event.Time
}

// begin sets the receipt of the last message, unless that is known.
func (c *logClock) begin(received time.Time) {
	if c.received.IsZero() {
		c.received = received
	}
}

func (c *logClock) advance(received time.Time) event.Time {
	if c.received.IsZero() || c.time == 0 {
		c.time = max(c.time, event.Time(received.UnixNano()))
	} else {
		c.time += event.Time(max(received.Sub(c.received), 0))
	}
	c.received = received
	return c.time
}

// ahead returns the lead of the log's time over the broker's clock, or over ours, which is now:
// the broker's own may still be wrong.
func (c *logClock) ahead(now time.Time) time.Duration {
	if c.received.IsZero() {
		return 0
	}
	return time.Duration(c.time - event.Time(min(c.received.UnixNano(), now.UnixNano())))
}
