package event

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The limits of what is read from messages and files. Those that the
// configuration of a decoder can move are the defaults here.
const (
	ClassesMax            = 4096    // label classes
	MessageBytesDefault   = 1 << 20 // a message's payload
	MessageBytesLimit     = 8 << 20 // what MessageBytesMax may be set to
	EventsPerMessageLimit = 65536   // events in a message
	IDBytesLimit          = 256     // ids, names of communities, versions and attributes
	AttributesPerEventMax = 64      // attributes in a vertex event
	AttributeTextBytesMax = 4096    // the text of one attribute value
	UnitsPerMessageMax    = 4 << 20 // predictions in a message, times K
	AttributesPerMessage  = 1 << 20 // attributes in a message
	JSONDepthMax          = 8       // objects and arrays inside each other
	TimeMax               = Time(1) << 62
)

// Limits bound what events may make a pipeline hold. Zero is the capacity of the indices.
type Limits struct {
	Vertices    int
	Edges       int
	Communities int
	Memberships int `json:",omitempty"` // of all communities together
}

// Or returns the limits with those of fallback where there is none.
func (l Limits) Or(fallback Limits) Limits {
	return Limits{
		Vertices: cmp.Or(l.Vertices, fallback.Vertices), Edges: cmp.Or(l.Edges, fallback.Edges),
		Communities: cmp.Or(l.Communities, fallback.Communities), Memberships: cmp.Or(l.Memberships, fallback.Memberships),
	}
}

// ClassSet lists the label classes. On the wire and in files a class is its index, or its name
// when there are names.
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
