package incremental

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// The label densities by name. Uniform is the default.
const (
	DensityUniform = "uniform"
	DensityPPR     = "ppr"
)

// DensityNames lists the label densities.
var DensityNames = []string{DensityUniform, DensityPPR}

// checkDensity reports a density that there is not, or that goes with other settings.
func (c Config) checkDensity() error {
	if c.Density == "" || c.Density == DensityUniform {
		return nil
	}
	var errs []error
	if c.Density != DensityPPR {
		errs = append(errs, fmt.Errorf("label_density: there is no %q; there are %v", c.Density, DensityNames))
	}
	if c.Engine == EngineDual {
		errs = append(errs, fmt.Errorf("label_density: %s goes with the engine %s, not %s", c.Density, EnginePrimal, EngineDual))
	}
	for _, o := range c.Estimates {
		if o.Method.UsesKernel() && o.Preset != "" && o.Preset != quant.Density {
			errs = append(errs, fmt.Errorf("label_density: %s goes with the preset %s, not %s", c.Density, quant.Density, o.Preset))
		}
	}
	return errors.Join(errs...)
}

// densityFloor is what is added to the density of labels, as a share of their mean
// density, cut to a power of two: a label without others around weighs at most 2 to 3
// times as much as one at the mean. Less finds more noise than it removes bias.
const densityFloor = 1

// propensity keeps how dense the calibration labels are around every vertex: the
// ppr field of their vertices, by the engine that keeps the communities'. A label
// must not count itself, and its own mass is not known without a solve of its own.
// So the labels are drawn into two halves by the hash of their vertex's name, each
// half is a field, and a label reads that of the other half.
//
// With z = a/d a degree-normalised mass, z_c of the community and z_o of the other
// half, and f the floor, a label weighs
//
//	f z_c / (z_o + f)
//
// in the place of a: the ratio of two densities that are smoothed alike, in which the
// pull of walks towards large degrees cancels.
type propensity struct {
	view   graphstore.View
	halves [2]*diffusion.Field
	half   []uint8 // n: 1 + half of a vertex that is a source, else 0
	labels int     // sources
	floor  float64

	touched []graphstore.Vertex // by the last update
	sources [2][]diffusion.SourceChange
}

func newPropensity(config diffusion.Config) *propensity {
	p := &propensity{}
	for i := range p.halves {
		field, err := diffusion.NewField(config)
		if err != nil {
			panic(err) // the configuration was validated
		}
		p.halves[i] = field
	}
	return p
}

// halfOf draws half of the vertices by name, so that the draw outlives an index.
func halfOf(view graphstore.View, v graphstore.Vertex) uint8 {
	return 1 + uint8(xxhash.Sum64String(view.ID(v).String())>>1&1)
}

// follow makes v a source or none, as its label now says.
func (p *propensity) follow(view graphstore.View, v graphstore.Vertex) {
	label, after := view.Label(v), uint8(0)
	if label.Class != event.NoClass && label.Role == event.Calibrate {
		after = halfOf(view, v)
	}
	before := p.half[v]
	if before == after {
		return
	}
	if before > 0 {
		p.sources[before-1] = append(p.sources[before-1], diffusion.SourceChange{V: v, Change: -1})
		p.labels--
	}
	if after > 0 {
		p.sources[after-1] = append(p.sources[after-1], diffusion.SourceChange{V: v, Change: 1})
		p.labels++
	}
	p.half[v] = after
}

func (p *propensity) begin(view graphstore.View) {
	p.view, p.touched = view, p.touched[:0]
	p.half = append(p.half, make([]uint8, view.Vertices()-len(p.half))...)
	for i := range p.sources {
		p.sources[i] = p.sources[i][:0]
	}
}

// update brings the fields to view, which delta led to, and reports whether every
// weight changes.
func (p *propensity) update(view graphstore.View, delta *graphstore.Delta) bool {
	p.begin(view)
	for _, l := range delta.Labels {
		p.follow(view, l.V)
	}
	for i, field := range p.halves {
		field.Update(view, delta, p.sources[i])
		p.touched = append(p.touched, field.Touched()...)
	}
	before := p.floor
	p.rescale()
	return p.floor != before
}

// solve starts from nothing.
func (p *propensity) solve(view graphstore.View, certificate float64) {
	p.begin(view)
	for v := range graphstore.Vertex(view.Vertices()) {
		p.follow(view, v)
	}
	for i, field := range p.halves {
		field.Solve(view, p.sources[i], certificate)
	}
	p.rescale()
}

// rescale sets the floor. A power of two, it moves seldom, and is a function of the
// graph and its labels alone.
func (p *propensity) rescale() {
	mean := float64(p.labels) / 2 / (p.view.WeightSum() + float64(p.view.Vertices()))
	p.floor = 1
	if mean > 0 {
		_, exponent := math.Frexp(densityFloor * mean)
		p.floor = math.Ldexp(1, exponent-1)
	}
}

// weight returns what a calibration label whose vertex has mass a weighs: with no more
// than its share of the mass, so that sums keep their range.
func (p *propensity) weight(v graphstore.Vertex, a float64) float64 {
	other := p.halves[0]
	if p.half[v] == 1 {
		other = p.halves[1]
	}
	d := p.view.Degree(v) + 1
	return a * p.floor / (max(other.Mass(v), 0) + float64(p.floor*d))
}

// densityRow is a half's field, beside its vectors.
type densityRow struct{ Field []byte }

const (
	densitySection = "density.arrow"    // densityRow: one for each half
	densityPattern = "density-%d.arrow" // vectors of a half
)

// saveDensity adds the halves as sections.
func (c *Core) saveDensity(add func(string, func(*bytes.Buffer) error) error) error {
	if c.density == nil {
		return nil
	}
	var rows []densityRow
	for i, field := range c.density.halves {
		state := field.State()
		rows = append(rows, densityRow{state.Rest})
		err := add(fmt.Sprintf(densityPattern, i), func(w *bytes.Buffer) error {
			return graphstore.WriteFloats(w, []graphstore.Floats{{Name: "z", Values: state.Z}, {Name: "r", Values: state.R}})
		})
		if err != nil {
			return err
		}
	}
	return add(densitySection, func(w *bytes.Buffer) error { return graphstore.WriteRows(w, rows) })
}

// restoreDensity takes the halves over from the sections.
func (c *Core) restoreDensity(view graphstore.View, sections map[string][]byte) error {
	if c.config.Density != DensityPPR {
		return nil
	}
	rows, err := readRows[densityRow](sections, densitySection)
	if err != nil {
		return err
	}
	p := newPropensity(c.config.diffusion())
	if len(rows) != len(p.halves) {
		return fmt.Errorf("section %s: %d rows, want %d", densitySection, len(rows), len(p.halves))
	}
	for i, row := range rows {
		columns, err := graphstore.ReadFloats(sections[fmt.Sprintf(densityPattern, i)], "z", "r")
		if err != nil {
			return err
		}
		p.halves[i], err = diffusion.RestoreField(c.config.diffusion(), view, diffusion.State{
			Z: columns[0].Values, R: columns[1].Values, Rest: row.Field,
		})
		if err != nil {
			return err
		}
	}
	p.begin(view)
	for v := range graphstore.Vertex(view.Vertices()) {
		p.follow(view, v)
	}
	p.rescale()
	c.density = p
	return nil
}
