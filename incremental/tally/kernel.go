package tally

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Mass reads the kernel mass a(v) of one community, at least 0.
type Mass func(v Vertex) float64

// UpdateKernel follows the masses of one community's kernel after Update: mass is
// the kernel as it is now, and touched holds at least the vertices whose mass
// changed. It may run for several communities side by side.
func (t *Tallies) UpdateKernel(id CommunityID, view graphstore.View, sums *neighborhood.Sums,
	mass Mass, touched []Vertex,
) {
	c := t.each[id]
	if len(c.a) == 0 { // nothing is summed yet
		c.scale = scaleOf(t.KernelSum(id))
	}
	if c.scale != scaleOf(t.KernelSum(id)) || t.decay != nil && t.decay.moved {
		t.RebuildKernel(id, view, sums, mass)
		return
	}
	c.growRows(t.rows.size)
	for i := range t.changed {
		t.moveRow(c, &t.changed[i], mass)
	}
	scratch := make([]float64, 0, t.classes*(2+2*t.classes)+1)
	for _, v := range touched {
		slot := t.rows.slot[v]
		if slot == noRow {
			continue
		}
		before, after := c.a[slot], mass(v)*c.scale
		if before == after {
			continue
		}
		s := stateOf(view, sums, v)
		scratch = t.cells(scratch, s.profile)
		g := t.gains(s.time)
		t.weigh(c, s.label.Class, scratch, before, g, -1)
		t.weigh(c, s.label.Class, scratch, after, g, 1)
		c.a[slot] = after
		t.moved[id] = moved
	}
}

func (c *community) growRows(n int) {
	if have := len(c.a); n > have {
		c.a = append(c.a, make([]float64, n-have)...)
	}
}

// moveRow follows a row whose class or cells changed, at its mass before and
// after. A row that two Updates of one step changed is moved twice, by way of its mass after
// the step: integers take the detour back without a trace.
func (t *Tallies) moveRow(c *community, change *rowChange, mass Mass) {
	if change.slotBefore != noRow {
		t.weigh(c, change.classBefore, change.before, c.a[change.slotBefore], change.gainsBefore, -1)
		c.a[change.slotBefore] = 0
	}
	if change.slotAfter != noRow {
		a := mass(change.v) * c.scale
		t.weigh(c, change.classAfter, change.after, a, change.gainsAfter, 1)
		c.a[change.slotAfter] = a
	}
}

// scaleOf returns the factor of the masses of a kernel that sums to M before they are summed: a
// power of two that keeps M, and with it every sum of masses, below 2^23, so that no sum of squares
// leaves the range of a Sum. It is one for all but communities with huge multiplicities, and
// changes with every factor of 256 only, since all rows are then counted anew.
func scaleOf(kernelSum float64) float64 {
	scale := 1.0
	for kernelSum*scale >= 1<<23 {
		scale /= 256
	}
	return scale
}

// weigh adds one row's terms at the scaled mass a to A1 and A2, or takes them back.
func (t *Tallies) weigh(c *community, class event.Class, cells []float64, a float64, g gains, sign int) {
	if !(a > 0) || g.one == 0 {
		return
	}
	linear, square, mixed := float64(g.one*a), float64(g.square*float64(a*a)), float64(g.square*a)
	for kind := range family(families) {
		if t.keep.has(kind) {
			z := kind.cells(t.classes)
			from, to := int(class)*z, (int(class)+1)*z
			accumulate(c.a1[kind][from:to], cells[:z], linear, sign)
			accumulate(c.a2[kind][from:to], cells[:z], square, sign)
			if t.decay != nil {
				accumulate(c.g2a[kind][from:to], cells[:z], mixed, sign)
			}
			cells = cells[z:]
		}
	}
}

// Mass returns the mass of a label's vertex that was last summed, exactly: the scale is a power
// of two. Labels lie closer together here than where the kernel keeps all vertices.
func (t *Tallies) Mass(id CommunityID, v Vertex) float64 {
	if slot := t.rows.slot[v]; slot != noRow {
		return t.each[id].a[slot] / t.each[id].scale
	}
	return 0
}

// LabelsReached returns the mass of all labels that was last summed.
func (t *Tallies) LabelsReached(id CommunityID) (mass float64) {
	c := t.each[id]
	for i := range c.a1[whole] {
		mass += c.a1[whole][i].Float() / c.scale
	}
	return mass
}

// RebuildKernel counts A1 and A2 of one community from nothing. It may run for
// several communities side by side.
func (t *Tallies) RebuildKernel(id CommunityID, view graphstore.View, sums *neighborhood.Sums, mass Mass) {
	c := t.each[id]
	c.clearKernel()
	c.scale = scaleOf(t.KernelSum(id))
	c.growRows(t.rows.size)
	clear(c.a)
	var cells []float64
	for _, v := range t.rows.order {
		s := stateOf(view, sums, v)
		cells = t.cells(cells, s.profile)
		a := mass(v) * c.scale
		t.weigh(c, s.label.Class, cells, a, t.gains(s.time), 1)
		c.a[t.rows.slot[v]] = a
	}
	t.moved[id] = moved
}

// DropKernel forgets A1 and A2 of one community, which a dual serves from now on.
func (t *Tallies) DropKernel(id CommunityID) {
	c := t.each[id]
	c.clearKernel()
	c.a = nil
}

func (c *community) clearKernel() {
	for kind := range c.a1 {
		clear(c.a1[kind])
		clear(c.a2[kind])
		clear(c.g2a[kind])
	}
}

// Rebuild counts everything but the kernels' masses from nothing: the start of a
// cold core, and the twin that tests hold Update against. Every community's
// Sources then lists its whole kernel, and RebuildKernel must follow.
func (t *Tallies) Rebuild(view graphstore.View, sums *neighborhood.Sums) {
	*t = *New(t.classes, t.keep)
	t.Begin(view)
	for v := range Vertex(view.Vertices()) {
		if s := stateOf(view, sums, v); s.calibrates() {
			t.rows.take(v)
			t.rows.order = append(t.rows.order, v)
		}
	}
	t.moveLandmark(view)
	t.recountRows(view, sums)
	for id := range t.each {
		t.rebuildMembers(CommunityID(id), view, sums)
	}
}
