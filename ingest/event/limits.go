package event

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// The limits on messages and files.
const (
	ClassesMax            = 4096    // label classes
	MessageBytesMax       = 1 << 20 // a message's payload
	EventsPerMessageLimit = 65536   // events in a message
	IDBytesLimit          = 256     // ids, names of communities, versions and attributes
	AttributesPerEventMax = 64      // attributes in a vertex event
	AttributeTextBytesMax = 4096    // the text of one attribute value
	UnitsPerMessageMax    = 4 << 20 // predictions in a message, times K
	AttributesPerMessage  = 1 << 20 // attributes in a message
	JSONDepthMax          = 8       // objects and arrays inside each other
	TimeMax               = Time(1) << 62
)

// Limits bound how much events may make a pipeline hold. Zero is the capacity of the indices.
type Limits struct {
	Vertices    int `yaml:"vertices"`
	Edges       int `yaml:"edges"`
	Communities int `yaml:"communities"`
	Memberships int `yaml:"memberships" json:",omitempty"` // of all communities together
}

// Or returns the limits, with those of fallback in place of zeros.
func (l Limits) Or(fallback Limits) Limits {
	return Limits{
		Vertices: cmp.Or(l.Vertices, fallback.Vertices),
		Edges:    cmp.Or(l.Edges, fallback.Edges),
		Communities: cmp.Or(l.Communities,
			fallback.Communities),
		Memberships: cmp.Or(l.Memberships, fallback.Memberships),
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

// Signed reports whether a class has a negative number as its name, as stances -1 and 1 have.
// Numbers in files are then names of classes, not indices.
func (c ClassSet) Signed() bool {
	for _, name := range c.Names {
		if n, err := strconv.Atoi(name); err == nil && n < 0 {
			return true
		}
	}
	return false
}

// Validate reports every violation at once.
func (c ClassSet) Validate() error {
	var errs []error
	if k := c.K(); k < 1 || k > ClassesMax {
		errs = append(errs, fmt.Errorf("classes: %d, must be 1 to %d", k, ClassesMax))
	}
	if len(c.Names) > 0 && len(c.Names) != c.K() {
		errs = append(errs, fmt.Errorf("classes: %d names for %d classes", len(c.Names), c.K()))
	}
	seen := make(map[string]int, len(c.Names))
	for k, name := range c.Names {
		if len(name) == 0 || len(name) > IDBytesLimit || !utf8.ValidString(name) {
			errs = append(errs, fmt.Errorf(
				"classes: the name of class %d must be 1 to %d bytes of UTF-8", k, IDBytesLimit))
		}
		if before, ok := seen[name]; ok {
			errs = append(errs,
				fmt.Errorf("classes: %d and %d are both named %q", before, k, name))
		}
		seen[name] = k
		if n, err := strconv.Atoi(name); err == nil && n != k && n >= 0 && !c.Signed() {
			errs = append(errs,
				fmt.Errorf("classes: class %d is named %q, which is an index", k, name))
		}
	}
	return errors.Join(errs...)
}

// LatePolicy decides which events are late, and whether they apply. An event is late if its own
// time lies more than After behind the log's time at the receipt of its message. Vertex and control
// events, and events without a time, are never late. The zero value applies every event.
type LatePolicy struct {
	After time.Duration // 0: no event is late

	// The kinds whose late events are refused, with the reason Late. Late events of other kinds
	// apply at their place in the log and are counted.
	Edges, Labels, Predictions, Posts, Members bool
}

// Validate reports every violation at once.
func (p LatePolicy) Validate() error {
	var errs []error
	if p.After < 0 || p.After > time.Duration(TimeMax) {
		errs = append(errs,
			fmt.Errorf("late.after: %v must be positive and below 146 years", p.After))
	}
	if p.After == 0 && p != (LatePolicy{}) {
		errs = append(errs,
			errors.New("late.after: missing; how far behind the log's time is late?"))
	}
	return errors.Join(errs...)
}

// IsLate reports whether an event of a kind with a time t is late when the log's
// time is now; 0 stands for no time.
func (p LatePolicy) IsLate(k Kind, t, now Time) bool {
	return p.After > 0 && k < KindVertex && t != 0 && now != 0 && t < now-Time(p.After)
}

// Problem counts a late event of a kind in b, and returns the reason to refuse it, or nil if it
// applies.
func (p LatePolicy) Problem(b *Batch, k Kind, t, now Time) *Problem {
	b.Late[k]++
	refused := [Kinds]bool{
		KindEdge:       p.Edges,
		KindLabel:      p.Labels,
		KindPrediction: p.Predictions,
		KindPost:       p.Posts,
		KindMember:     p.Members,
	}
	if !refused[k] {
		return nil
	}
	return Problemf(Late, "its time, %v, is %v behind the log's, more than %v",
		t, time.Duration(now-t).Round(time.Millisecond), p.After)
}
