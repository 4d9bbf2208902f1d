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
	EdgesMaxDefault    = 1 << 29
	NamesMaxDefault    = 1 << 20
	NamesMaxLimit      = 1 << 28
	KeysMaxDefault     = 1 << 10
)

// Config configures a store and its limits.
type Config struct {
	Classes     int    // K, the number of classes; 1 <= K <= ClassesMax
	Communities []Rule // get the first community indices, in this order

	Windows Windows // how long assertions hold that have no time to live

	Evidence EvidenceConfig // how long observations of a person stay evidence

	// 0 means VerticesMaxDefault, EdgesMaxDefault, NamesMaxDefault, membershipsMax
	Limits event.Limits

	// SwitchAt is the share that an incoming model version must cover to become active; 0 means
	// SwitchAtDefault.
	SwitchAt float64
	// LapseAfter ends a roll-out after this log time without a prediction of the incoming version;
	// 0 means LapseAfterDefault, < 0 never.
	LapseAfter time.Duration

	// For tests; 0 means the constant.
	hubDegree     int // vertices with more neighbours get a hash index: hubDegreeDefault
	versionsMax   int // model versions: NamesMaxDefault
	attributesMax int // attribute keys; each costs 8 bytes a vertex: KeysMaxDefault
}

// Validate reports every violation.
func (c *Config) Validate() error {
	errs := []error{validateRules(c.Communities)}
	want := func(holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	between := func(name string, value, least, most int) {
		want(value >= least && value <= most, "%s is %d, want %d to %d", name, value, least, most)
	}
	between("classes", c.Classes, 1, ClassesMax)
	between("vertices max", c.Limits.Vertices, 0, VerticesMaxDefault)
	between("edges max", c.Limits.Edges, 0, EdgesMaxDefault)
	between("communities max", c.Limits.Communities, 0, NamesMaxLimit)
	between("memberships max", c.Limits.Memberships, 0, membershipsMax)
	want(c.Windows.Edges >= 0, "windows.edges: %v is negative", c.Windows.Edges)
	want(c.Windows.Labels >= 0, "windows.labels: %v is negative", c.Windows.Labels)
	want(c.Windows.Predictions >= 0, "windows.predictions: %v is negative", c.Windows.Predictions)
	want(c.SwitchAt >= 0 && c.SwitchAt <= 1,
		"models: switch_at is %v, want a share above 0, up to 1",
		c.SwitchAt)
	errs = append(errs, validateException(c.Evidence.Except))
	egos, limits := 0, c.withDefaults().Limits
	for _, r := range c.Communities {
		egos += r.egoMembersMax()
	}
	want(egos <= limits.Memberships,
		"ego networks may have %d members, above the limit of %d memberships",
		egos, limits.Memberships)
	want(len(c.Communities) <= limits.Communities, "%d communities, above the limit of %d",
		len(c.Communities), limits.Communities)
	return errors.Join(errs...)
}

// withDefaults returns the configuration with defaults for the limits that are not set.
func (c *Config) withDefaults() Config {
	d := *c
	d.hubDegree = cmp.Or(d.hubDegree, hubDegreeDefault)
	d.Limits = d.Limits.Or(event.Limits{
		Vertices:    VerticesMaxDefault,
		Edges:       EdgesMaxDefault,
		Communities: NamesMaxDefault,
		Memberships: membershipsMax,
	})
	d.versionsMax = cmp.Or(d.versionsMax, NamesMaxDefault)
	d.attributesMax = cmp.Or(d.attributesMax, KeysMaxDefault)
	d.Evidence.EdgeTTL = cmp.Or(d.Evidence.EdgeTTL, edgeTTLDefault)
	d.SwitchAt = cmp.Or(d.SwitchAt, SwitchAtDefault)
	d.LapseAfter = cmp.Or(d.LapseAfter, LapseAfterDefault)
	return d
}
