package ingest

import (
	"time"

	"gqlstream/ingest/event"
)

// logClock is log time by receipt: the latest time at which the broker received a message. If the
// broker's clock goes back, log time stands still until the clock has caught up, so that nothing
// expires meanwhile and no event is refused as expired before it arrives. Steps are still cut by
// the times of receipt, so estimates continue. A clock event sets log time to its time of receipt.
type logClock struct {
	received time.Time // of the last message; zero: unknown
	time     event.Time
}

// setFirst sets the receipt time of the last message, unless it is known.
func (c *logClock) setFirst(received time.Time) {
	if c.received.IsZero() {
		c.received = received
	}
}

func (c *logClock) advance(received time.Time) event.Time {
	c.time = max(c.time, event.Time(received.UnixNano()))
	c.received = received
	return c.time
}

// set sets log time to the time of receipt of a message.
func (c *logClock) set(received time.Time) { c.time = event.Time(received.UnixNano()) }

// ahead returns how far the log's time is ahead of the broker's clock, or of the local clock (now),
// since the broker's may still be wrong.
func (c *logClock) ahead(now time.Time) time.Duration {
	if c.received.IsZero() {
		return 0
	}
	return time.Duration(c.time - event.Time(min(c.received.UnixNano(), now.UnixNano())))
}
