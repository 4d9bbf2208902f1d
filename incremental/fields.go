package incremental

import (
	"errors"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/parallel"
)

// fields stores the masses of each community separately: with the kernel ppr as a field that is
// updated in every step, otherwise as values that are computed again at each emission. A community
// that is new since the last emission gets its masses at the next one. Every edge touches every
// field, so a step costs as much as there are communities.
type fields struct {
	core *Core
	each []kernel // by community, up to the newest one at the last emission
}

// kernel holds the masses of one community.
type kernel struct {
	field  *diffusion.Field // of ppr
	values []float64        // of the other kernels
}

// mass returns the kernel mass of a vertex, at least 0.
func (k *kernel) mass(v graphstore.Vertex) float64 {
	switch {
	case k.field != nil:
		return max(k.field.Mass(v), 0)
	case int(v) < len(k.values):
		return k.values[v]
	}
	return 0
}

// bound returns the certificate of the masses, which are exact for other kernels than ppr.
func (k *kernel) bound() float64 {
	if k.field != nil {
		return k.field.Certificate()
	}
	return 0
}

// Follow implements kernels.
func (f *fields) Follow(view graphstore.View, delta *graphstore.Delta) {
	c := f.core
	if c.config.Kernel != diffusion.PPR {
		return // the values wait for Ready
	}
	parallel.Each(len(f.each), func(i, _ int) {
		id, k := graphstore.Community(i), &f.each[i]
		if k.field == nil {
			return // of another shard
		}
		k.field.Update(view, delta, c.tallies.Sources(id))
		if slices.ContainsFunc(k.field.Touched(), c.tallies.Calibrates) {
			c.tallies.Touch(id)
		}
	})
}

// Ready implements kernels.
func (f *fields) Ready(view graphstore.View) {
	f.each = append(f.each, make([]kernel, view.Communities()-len(f.each))...)
	parallel.Each(len(f.each), func(i, _ int) {
		id, k := graphstore.Community(i), &f.each[i]
		if !f.core.owns(id, view) {
			*k = kernel{}
			return
		}
		if k.field == nil { // else it follows every step
			f.compute(id, view)
			f.core.tallies.Touch(id)
		}
		if k.field != nil {
			f.retune(id, view)
		}
	})
}

// retune sets the tolerance of a field by the mean mass of labels: where labels are far from the
// members it is small, and so must be its error.
func (f *fields) retune(id graphstore.Community, view graphstore.View) {
	c, k := f.core, &f.each[id]
	want := c.config.Tolerance * c.reach(
		c.tallies.LabelsReached(view, k.mass)/max(c.tallies.KernelSum(id), 1),
		view,
	)
	if now := k.field.Tolerance(); now > 2*want || now < want/2 {
		k.field.Retune(want)
		k.field.Update(view, nil, nil)
		c.tallies.Touch(id)
	}
}

// compute evaluates the kernel of one community.
func (f *fields) compute(id graphstore.Community, view graphstore.View) {
	c, k := f.core, &f.each[id]
	sources := diffusion.Sources(id, view)
	if c.config.Kernel == diffusion.PPR {
		k.field = newField(&c.config)
		k.field.Solve(view, sources, c.config.Tolerance)
		return
	}
	source := make([]float64, view.Vertices())
	for _, s := range sources {
		source[s.V] = s.Change
	}
	k.values = diffusion.Kernel(view, c.config.Kernel, source, c.config.Alpha)
}

// newField returns the field of an empty graph.
func newField(c *Config) *diffusion.Field {
	field, err := diffusion.NewField(c.diffusion())
	if err != nil {
		panic(err) // the configuration was validated
	}
	return field
}

// Statistics implements kernels.
func (f *fields) Statistics(id graphstore.Community, view graphstore.View) reading {
	c := f.core
	s := c.tallies.Statistics(
		id, view, c.sums, f.each[id].mass, c.affordsExact(id, view, exactTermsMax),
	)
	// A field that once reached labels keeps traces of mass on labels that it no longer reaches. Of
	// its error, as small against M as the certificate says, an even share may lie on each label.
	s.MassMin = max(reachMin, f.Certificate(id)) * s.KernelSum / float64(max(view.Vertices(), 1))
	return reading{Statistics: s}
}

// labelMasses returns the masses of the calibration labels for one community, in their order.
func (f *fields) labelMasses(id graphstore.Community) []float64 {
	rows := f.core.tallies.Rows()
	masses := make([]float64, len(rows))
	for i, v := range rows {
		masses[i] = f.each[id].mass(v)
	}
	return masses
}

// Certificate implements kernels: it bounds the sum of the errors of all masses.
func (f *fields) Certificate(id graphstore.Community) float64 {
	if int(id) >= len(f.each) {
		return 0
	}
	return f.each[id].bound()
}

// fieldRow is the field of a community.
type fieldRow struct {
	ofCommunity
	diffusion.State
}

const fieldsSection = "fields.arrow" // fieldRow: one for each community

// State implements kernels. Values that are computed at each emission are no state.
func (f *fields) State(add addSection) {
	var rows []fieldRow
	for id := range f.each {
		if field := f.each[id].field; field != nil {
			rows = append(rows, fieldRow{ofCommunity{uint32(id)}, field.State()})
		}
	}
	addRows(f.core, add, fieldsSection, true, rows)
}

// restoreFields reads the output of State; the tallies have been counted again.
func restoreFields(c *Core, view graphstore.View, sections map[string][]byte) (*fields, error) {
	rows, err := ownedRows[fieldRow](c, sections, fieldsSection)
	if err != nil {
		return nil, err
	}
	known := 0 // to the last emission: communities that are new since have no field yet
	for _, row := range rows {
		known = max(known, int(row.Community)+1)
	}
	f := &fields{core: c, each: make([]kernel, known)}
	errs := make([]error, len(rows))
	parallel.Each(len(rows), func(i, _ int) {
		id := graphstore.Community(rows[i].Community)
		f.each[id].field, errs[i] = diffusion.RestoreField(c.config.Alpha, view, rows[i].State)
	})
	return f, errors.Join(errs...)
}
