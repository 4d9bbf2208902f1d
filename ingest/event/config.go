package event

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The limits of what a decoder accepts. Those that a Config can move are the
// defaults here.
const (
	ClassesMax                = 4096    // label classes
	MessageBytesDefault       = 1 << 20 // a message's payload
	MessageBytesLimit         = 8 << 20 // what MessageBytesMax may be set to
	EventsPerMessageLimit     = 65536   // events in a message
	IDBytesLimit              = 256     // ids, names of communities, versions and attributes
	AttributesPerEventMax     = 64      // attributes in a vertex event
	AttributeTextBytesMax     = 4096    // the text of one attribute value
	UnitsPerMessageMax        = 4 << 20 // predictions in a message, times K
	AttributesPerMessage      = 1 << 20 // attributes in a message
	JSONDepthMax              = 8       // objects and arrays inside each other
	TimeMax                   = Time(1) << 62
	sumTolerance              = 1e-3 // how far the sum of probabilities may be from one
	schemaVersion             = "1"  // the version of the wire forms in this package
	schemaVersionKey          = "gqlstream.schema"
	detailTextBytesMax    int = 48 // input quoted in a detail
)

// ClassSet is what label classes there are. On the wire and in files a class is
// its index, or its name when there are names.
type ClassSet struct {
	Count int      // K; zero takes the number of names
	Names []string // none, or Count distinct names
}

// K returns the number of classes.
func (c ClassSet) K() int {
	if c.Count == 0 {
		return len(c.Names)
	}
	return c.Count
}

// Name returns the name of class k, or its index in decimal when it has none.
func (c ClassSet) Name(k Class) string {
	if k >= 0 && int(k) < len(c.Names) {
		return c.Names[k]
	}
	return strconv.Itoa(int(k))
}

// Validate reports every violation at once.
func (c ClassSet) Validate() error {
	var errs []error
	if k := c.K(); k < 1 || k > ClassesMax {
		errs = append(errs, fmt.Errorf("event: %d classes, must be 1 to %d", k, ClassesMax))
	}
	if len(c.Names) > 0 && len(c.Names) != c.K() {
		errs = append(errs, fmt.Errorf("event: %d class names for %d classes", len(c.Names), c.K()))
	}
	seen := make(map[string]int, len(c.Names))
	for k, name := range c.Names {
		if len(name) == 0 || len(name) > IDBytesLimit || !utf8.ValidString(name) {
			errs = append(errs, fmt.Errorf("event: name of class %d must be 1 to %d bytes of UTF-8",
				k, IDBytesLimit))
		}
		if before, ok := seen[name]; ok {
			errs = append(errs,
				fmt.Errorf("event: classes %d and %d are both named %q", before, k, name))
		}
		seen[name] = k
		if n, err := strconv.Atoi(name); err == nil && n != k {
			errs = append(errs,
				fmt.Errorf("event: class %d is named %q, which is an index", k, name))
		}
	}
	return errors.Join(errs...)
}

// Config is what a Decoder must know of the pipeline. Limits of zero take their
// defaults.
type Config struct {
	Classes ClassSet

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
	check("MessageBytesMax", c.MessageBytesMax, MessageBytesLimit)
	check("EventsPerMessageMax", c.EventsPerMessageMax, EventsPerMessageLimit)
	check("IDBytesMax", c.IDBytesMax, IDBytesLimit)
	return errors.Join(errs...)
}

// withDefaults returns c with its zeros replaced.
func (c Config) withDefaults() Config {
	if c.MessageBytesMax == 0 {
		c.MessageBytesMax = MessageBytesDefault
	}
	if c.EventsPerMessageMax == 0 {
		c.EventsPerMessageMax = EventsPerMessageLimit
	}
	if c.IDBytesMax == 0 {
		c.IDBytesMax = IDBytesLimit
	}
	c.Classes.Count = c.Classes.K()
	return c
}
