package incremental

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/posterior"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// Config lists what the core tracks and which estimates it makes. It decides results, so its digest
// is part of every estimate. Settings that do not decide results, such as outputs, do not belong
// here, except those marked as not part of the JSON.
type Config struct {
	Pipeline    string            // name in the records; may be empty
	Classes     int               // K >= 1
	Communities []graphstore.Rule // tracked from the start; member events may add more
	Estimates   []quant.Options   // published of each community; without any, auto alone

	// SelectedBy declares how the members of communities were selected, by name; the edges
	// say so of the others.
	SelectedBy map[string]stats.Selection `json:",omitempty"`

	Classifier string  `json:",omitempty"` // "" or classifier.Name
	Kernel     string  // "" is ppr; see diffusion.KernelNames
	Alpha      float64 // teleport probability, 0 is 0.1
	Tolerance  float64 // bound on the certificate of a kernel, 0 is toleranceDefault
	// how ppr kernels are kept: primal, one field a community; "" is dual, one structure for all
	// communities, where no method weighs cells and else primal; see sharesKernels
	Engine     string `json:",omitempty"`
	MembersMin int    // with fewer known people a community is suppressed; 0: none is
	// unit of published shares; 0: not rounded
	Round        float64       `json:",omitempty"`
	Emit         Emit          `json:",omitzero"`
	CompactEvery time.Duration // of log time; 0 is a minute, < 0 never
	Models       Models        `json:",omitzero"`
	Limits       event.Limits  // of the stored assertions; see Core.Limit

	Windows graphstore.Windows `json:",omitzero"` // how long assertions hold; zero is for ever
	// HalfLife is the age at which a calibration label counts half as much as a fresh
	// one; 0: they do not age.
	HalfLife time.Duration `json:",omitempty"`
	// LabelsDrawn is the declared draw of the calibration labels.
	LabelsDrawn posterior.Drawn           `json:",omitempty"`
	Evidence    graphstore.EvidenceConfig `json:",omitzero"` // how long observations stay evidence
	// carried out by the source, which has the messages
	Late event.LatePolicy `json:",omitzero"`

	// how the source cuts the log into steps; see ingest.StepConfig.Cut
	Cut string `json:",omitempty"`
	// refuse configure events, where publishers must not change which communities are tracked
	DenyConfigure bool `json:",omitempty"`
	// Shards is the number of parts of the communities; see ShardOf. It decides
	// results, because each part has a budget of its own; 0 is one.
	Shards int `json:",omitempty"`
	// Owned lists the shards that this core estimates; of the others it keeps only the
	// members of their communities. nil means all. It decides no result.
	Owned []int `json:"-"`

	// an emission leaves nothing for the next one, however long it takes; and all variances are
	// counted at the first one
	Patient bool `json:"-"`

	Work Work `json:",omitzero"` // of one emission
}

// Work bounds what one emission does, so that it ends before the next one. It decides results: what
// is left is done later. Zero is the default.
type Work struct {
	Solving  float64 // in classes times cells, of one shard; see emissionWork
	Sketches float64 // earned for second moments by one emission; see sketchEarned
}

// Emit bounds the movement of an estimate that is not published again. Its zero value publishes
// every movement.
type Emit struct {
	Threshold float64 // in standard errors of the last record; 0 is none
	// of log time, after which anything that moved is published; 0 is ten seconds
	AtLeastEvery time.Duration
}

// Models decides when a new model version takes the place of the old one. Zero is the
// default of the store.
type Models struct {
	// share of the old version's predictions, and of those with a calibration label, that it must
	// cover
	SwitchAt   float64       `yaml:"switch_at"`
	LapseAfter time.Duration `yaml:"-"` // of log time without a prediction of it; < 0 never
}

// A tolerance of toleranceDefault moves 99 shares of 100 by less than .05 standard errors. The
// store is put into canonical order after compactEveryDefault of log time.
const toleranceDefault, compactEveryDefault = 0.05, time.Minute

// WithDefaults returns the configuration with every zero replaced.
func (c Config) WithDefaults() Config {
	c.Kernel = cmp.Or(c.Kernel, diffusion.PPR)
	c.Alpha = cmp.Or(c.Alpha, diffusion.AlphaDefault)
	c.Tolerance = cmp.Or(c.Tolerance, toleranceDefault)
	c.CompactEvery = cmp.Or(c.CompactEvery, compactEveryDefault)
	clearDefault(&c.Models.SwitchAt, graphstore.SwitchAtDefault)
	clearDefault(&c.Models.LapseAfter, graphstore.LapseAfterDefault)
	clearDefault(&c.Shards, 1)
	if c.Emit.Threshold != 0 {
		c.Emit.AtLeastEvery = cmp.Or(c.Emit.AtLeastEvery, emitAtLeastEvery)
	} else {
		c.Emit.AtLeastEvery = 0
	}
	if len(c.Estimates) == 0 {
		c.Estimates = []quant.Options{quant.DefaultOptions()}
	}
	return c
}

// clearDefault resets a field that holds its default, so that digests from before the field
// existed stay valid.
func clearDefault[T comparable](field *T, fallback T) {
	if *field == fallback {
		var nothing T
		*field = nothing
	}
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	c = c.WithDefaults()
	store := c.store()
	errs := []error{
		store.Validate(),
		c.diffusion().Validate(),
		c.Late.Validate(),
		checkSelections(c.SelectedBy),
	}
	want := func(holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	want(slices.Contains(diffusion.KernelNames, c.Kernel),
		"kernel: %q is not one of %v", c.Kernel, diffusion.KernelNames)
	want(c.Classifier == "" || c.Classifier == classifier.Name,
		"classifier: %q is not %s", c.Classifier, classifier.Name)
	want(c.HalfLife >= 0 && c.HalfLife <= tally.HalfLifeMax,
		"label_half_life: %v, want 0 (never) to %v", c.HalfLife, tally.HalfLifeMax)
	want(c.Shards >= 0 && c.Shards <= shardsMax, "group.shards: %d, want 1 to "+
		"%d", c.Shards, shardsMax)
	want(c.Emit.Threshold >= 0 && c.Emit.Threshold <= emitThresholdMax,
		"emit.threshold: %v is not between 0 and %v standard "+
			"errors", c.Emit.Threshold, emitThresholdMax)
	want(c.Emit.AtLeastEvery >= 0, "emit.at_least_every: %v is negative", c.Emit.AtLeastEvery)
	want(c.LabelsDrawn == "" || slices.Contains(posterior.DrawnWays, c.LabelsDrawn),
		"labels.drawn: %q is not one of %v", c.LabelsDrawn, posterior.DrawnWays)
	want(c.MembersMin >= 0, "privacy.min_members: %d is negative", c.MembersMin)
	want(c.Round >= 0 && c.Round <= roundMax, "privacy.round: %v is not between 0 and "+
		"%v", c.Round, roundMax)
	for _, o := range c.Estimates {
		errs = append(errs, o.Validate())
		pair, _, hardPair := o.Method.Needs()
		want(c.Classes <= pairClassesMax || !pair && !hardPair && o.Method != quant.Auto,
			"estimates: %s works on pairs of classes and takes at most %[3]d classes, not %[2]d "+
				"(pacc, sis and diff take more)",
			o.Method, c.Classes, pairClassesMax)
	}
	return errors.Join(errs...)
}

// Digest names the configuration in 16 hexadecimal digits.
func (c Config) Digest() string {
	data, err := json.Marshal(c.WithDefaults())
	if err != nil {
		panic(err) // plain fields cannot fail
	}
	return fmt.Sprintf("%016x", xxhash.Sum64(data))
}

func (c Config) store() graphstore.Config {
	return graphstore.Config{
		Classes: c.Classes, Communities: c.Communities, Limits: c.Limits, Windows: c.Windows,
		Evidence: c.Evidence,
		SwitchAt: c.Models.SwitchAt, LapseAfter: c.Models.LapseAfter,
	}
}

func (c Config) diffusion() diffusion.Config {
	return diffusion.Config{Alpha: c.Alpha, Tolerance: c.Tolerance}
}

// families returns the cells that the configured methods read, and the further statistics that are
// stored.
func (c Config) families() tally.Families {
	f := tally.Families{ClassMasses: true, Means: true, HalfLife: c.HalfLife}
	for _, o := range c.Estimates {
		pair, hard, hardPair := o.Method.Needs()
		f.SoftPair, f.Hard, f.HardPair = f.SoftPair || pair, f.Hard || hard, f.HardPair || hardPair
		f.ClassMasses = f.ClassMasses && !o.Method.WeighsCells()
		f.Means = f.Means && o.Method == quant.Auto
	}
	return f
}

// sharesKernels reports whether one dual keeps the kernel masses of all communities. It keeps the
// kernel ppr only, since the others solve no linear system of the labels, and masses of whole
// classes only. Where a method weighs cells by the kernel, or the kernel is another one, every
// community has a field of its own.
func (c Config) sharesKernels() bool {
	return c.Engine != EnginePrimal && cmp.Or(c.Kernel, diffusion.PPR) == diffusion.PPR &&
		c.families().ClassMasses
}

// pairClassesMax bounds the classes of methods that look at pairs of classes: matrices of
// classes³ numbers for each kind of pairs, 128 MiB each at the bound and twice that as exact sums.
const pairClassesMax = 256

// checkSelections reports declarations that are none.
func checkSelections(by map[string]stats.Selection) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(stats.Selections, by[name]) {
			errs = append(errs, fmt.Errorf("communities: %q has selected_by %q, want one of %v "+
				"or %s",
				name, by[name], stats.Selections, selectedByEdges))
		}
	}
	return errors.Join(errs...)
}
