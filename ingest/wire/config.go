package wire

import (
	"cmp"
	"errors"
	"fmt"

	"gqlstream/ingest/event"
)

// Config is the configuration of a Decoder.
type Config struct {
	Classes event.ClassSet

	// MessageBytesMax bounds a payload; 0 is MessageBytesDefault, at most MessageBytesLimit.
	MessageBytesMax int
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	err := c.Classes.Validate()
	if c.MessageBytesMax < 0 || c.MessageBytesMax > event.MessageBytesLimit {
		err = errors.Join(err, fmt.Errorf("event: MessageBytesMax is %d, must be 0 to %d", c.MessageBytesMax, event.MessageBytesLimit))
	}
	return err
}

// withDefaults returns c with its zeros replaced.
func (c Config) withDefaults() Config {
	c.MessageBytesMax = cmp.Or(c.MessageBytesMax, event.MessageBytesDefault)
	c.Classes.Count = c.Classes.K()
	return c
}
