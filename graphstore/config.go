package graphstore

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"gqlstream/ingest/event"
)

// Limits that hold when the configuration does not set them, and the largest
// that it may set.
const (
	hubDegreeDefault   = 1024
	ClassesMax         = 1 << 10
	IDBytesMax         = 256 // of a vertex's name
	VerticesMaxDefault = 1 << 28
	EdgesMaxDefault    = 1 << 28
	NamesMaxDefault    = 1 << 20
	NamesMaxLimit      = 1 << 28
	KeysMaxDefault     = 1 << 10
)

// Config configures a store, and bounds what it holds.
type Config struct {
	Classes     int    // K, the number of classes; 1 <= K <= ClassesMax
	Communities []Rule // get the first community indices, in this order

	Windows Windows // how long assertions hold that have no time to live

	LabelTimes bool // keep when each label was last asserted; see View.LabelTime

	Limits event.Limits // 0 are VerticesMaxDefault, EdgesMaxDefault, NamesMaxDefault, membershipsMax

	SwitchAt   float64       // share that an incoming model version must cover to become active; 0 is SwitchAtDefault
	LapseAfter time.Duration // of log time without a prediction of it, after which it is dropped; 0 is LapseAfterDefault, < 0 never

	// For tests; 0 are the constants.
	hubDegree     int // vertices with more neighbours get a hash index: hubDegreeDefault
	versionsMax   int // model versions: NamesMaxDefault
	attributesMax int // attribute keys, each of which costs 8 bytes a vertex: KeysMaxDefault
}

// Validate reports every violation.
func (c *Config) Validate() error {
	var errs []error
	between := func(name string, value, least, most int) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("%s is %d, want %d to %d", name, value, least, most))
		}
	}
	between("classes", c.Classes, 1, ClassesMax)
	between("vertices max", c.Limits.Vertices, 0, VerticesMaxDefault)
	between("edges max", c.Limits.Edges, 0, EdgesMaxDefault)
	between("communities max", c.Limits.Communities, 0, NamesMaxLimit)
	between("memberships max", c.Limits.Memberships, 0, membershipsMax)
	names := [...]string{"edges", "labels", "predictions"}
	for i, window := range [...]time.Duration{c.Windows.Edges, c.Windows.Labels, c.Windows.Predictions} {
		if window < 0 {
			errs = append(errs, fmt.Errorf("windows.%s: %v is negative", names[i], window))
		}
	}
	if !(c.SwitchAt >= 0 && c.SwitchAt <= 1) {
		errs = append(errs, fmt.Errorf("models: switch_at is %v, want a share above 0, up to 1", c.SwitchAt))
	}
	if err := validateRules(c.Communities); err != nil {
		errs = append(errs, err)
	}
	egos := 0
	for _, r := range c.Communities {
		egos += r.egoMembersMax()
	}
	limits := c.withDefaults().Limits
	if most := limits.Memberships; egos > most {
		errs = append(errs, fmt.Errorf("ego networks may have %d members, above the limit of %d memberships", egos, most))
	}
	if len(c.Communities) > limits.Communities {
		errs = append(errs, fmt.Errorf("%d communities, above the limit of %d", len(c.Communities), limits.Communities))
	}
	return errors.Join(errs...)
}

// withDefaults returns the configuration with every limit that is not set at its default.
func (c *Config) withDefaults() Config {
	d := *c
	d.hubDegree = cmp.Or(d.hubDegree, hubDegreeDefault)
	d.Limits = d.Limits.Or(event.Limits{
		Vertices: VerticesMaxDefault, Edges: EdgesMaxDefault, Communities: NamesMaxDefault, Memberships: membershipsMax,
	})
	d.versionsMax = cmp.Or(d.versionsMax, NamesMaxDefault)
	d.attributesMax = cmp.Or(d.attributesMax, KeysMaxDefault)
	d.SwitchAt = cmp.Or(d.SwitchAt, SwitchAtDefault)
	d.LapseAfter = cmp.Or(d.LapseAfter, LapseAfterDefault)
	return d
}
