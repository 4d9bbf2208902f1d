package ingest

import (
	"time"

	"gqlstream/ingest/event"
)

// logClock is the log's time by the broker's: the latest time at which a message was received.
// Where the broker's clock goes back it stands until that has caught up, so that nothing expires
// meanwhile and no event is told for good that it has ended before it comes. Steps are still cut by
// the times of receipt, so that estimates come.
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
	c.time = max(c.time, event.Time(received.UnixNano()))
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
