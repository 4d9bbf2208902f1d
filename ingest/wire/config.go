package wire

import (
	"errors"
	"fmt"

	"gqlstream/ingest/event"
)

// Config is what a Decoder must know of the pipeline. Limits of zero take their
// defaults.
type Config struct {
	Classes event.ClassSet

	// MessageBytesMax bounds a payload; 0 is MessageBytesDefault, at most
	// MessageBytesLimit.
	MessageBytesMax int

	// EventsPerMessageMax bounds the events of a message; 0 is the most,
	// EventsPerMessageLimit.
	EventsPerMessageMax int

	// IDBytesMax bounds vertex ids and the names of communities, model versions
	// and attributes; 0 is the most, IDBytesLimit.
	IDBytesMax int
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	errs := []error{c.Classes.Validate()}
	check := func(name string, value, limit int) {
		if value < 0 || value > limit {
			errs = append(errs, fmt.Errorf("event: %s is %d, must be 0 to %d", name, value, limit))
		}
	}
	check("MessageBytesMax", c.MessageBytesMax, event.MessageBytesLimit)
	check("EventsPerMessageMax", c.EventsPerMessageMax, event.EventsPerMessageLimit)
	check("IDBytesMax", c.IDBytesMax, event.IDBytesLimit)
	return errors.Join(errs...)
}

// withDefaults returns c with its zeros replaced.
func (c Config) withDefaults() Config {
	if c.MessageBytesMax == 0 {
		c.MessageBytesMax = event.MessageBytesDefault
	}
	if c.EventsPerMessageMax == 0 {
		c.EventsPerMessageMax = event.EventsPerMessageLimit
	}
	if c.IDBytesMax == 0 {
		c.IDBytesMax = event.IDBytesLimit
	}
	c.Classes.Count = c.Classes.K()
	return c
}
