package tally

import (
	"slices"

	"gqlstream/ingest/event"
)

// rowChange is a calibration row that an Update changed: its class and the weight of its label
// before and after, or event.NoClass when there was no row, or is none.
type rowChange struct {
	v                       Vertex
	classBefore, classAfter event.Class
	gainsBefore, gainsAfter gains
}

// changeRow follows one vertex whose label or profile changed.
func (t *Tallies) changeRow(v Vertex, before, after *state) {
	change := rowChange{v: v, classBefore: event.NoClass, classAfter: event.NoClass}
	if before.calibrates() {
		change.classBefore, change.gainsBefore = before.label.Class, t.gains(before.time)
		t.countRow(before, change.gainsBefore, -1)
	}
	if after.calibrates() {
		change.classAfter, change.gainsAfter = after.label.Class, t.gains(after.time)
		t.countRow(after, change.gainsAfter, 1)
	}
	if change.classBefore == event.NoClass && change.classAfter == event.NoClass {
		return
	}
	t.changed = append(t.changed, change)
	if t.keep.Dual {
		t.changedSinceDual = append(t.changedSinceDual, v)
	}
}

// begins and ends report whether a vertex becomes a row, and whether it is none any longer.
func (c rowChange) begins() bool { return c.classBefore == event.NoClass }
func (c rowChange) ends() bool   { return c.classAfter == event.NoClass }

// mergeRows mends the list of rows after changes, which are sorted by vertex.
func (t *Tallies) mergeRows() {
	if !slices.ContainsFunc(t.changed, func(c rowChange) bool { return c.begins() || c.ends() }) {
		return
	}
	out, rest := t.merged[:0], t.rows
	for _, c := range t.changed {
		at, _ := slices.BinarySearch(rest, c.v)
		out = append(out, rest[:at]...)
		if rest = rest[at:]; !c.begins() {
			rest = rest[1:]
		}
		if !c.ends() {
			out = append(out, c.v)
		}
	}
	t.merged, t.rows = t.rows, append(out, rest...)
}

// renewRow notes that all communities read another N, by this row. Where means are all that is read of
// cells, they read the labels of each class alone.
func (t *Tallies) renewRow(c rowChange) {
	if t.keep.Means && c.classBefore == c.classAfter && c.gainsBefore == c.gainsAfter {
		return
	}
	if !t.keep.Means || t.decay != nil {
		t.MoveAll()
		return
	}
	t.MoveShared(0)
	if !c.begins() {
		t.renewed[c.classBefore] += 1 / float64(max(t.classN[c.classBefore], 1))
	}
	if !c.ends() {
		t.renewed[c.classAfter] += 1 / float64(max(t.classN[c.classAfter], 1))
	}
}

// countRow adds a row's cells to N, or takes them back.
func (t *Tallies) countRow(s *state, g gains, sign int) {
	class := int(s.label.Class)
	t.classN[class] += uint64(sign)
	for kind := range family(families) {
		if !t.keep.has(kind) {
			continue
		}
		phi := s.profile.phi(t.phi, kind)
		from, to := class*len(phi), (class+1)*len(phi)
		accumulate(t.n[kind][from:to], phi, g.one, sign)
		if t.decay != nil {
			accumulate(t.decay.n2[kind][from:to], phi, g.square, sign)
		}
		if kind == t.soft.kind && t.outer != nil {
			t.countOuter(class, phi, sign)
		}
	}
}

// countOuter adds a row's second moments to outer, or takes them back: the lower triangle is kept.
func (t *Tallies) countOuter(class int, phi []float64, sign int) {
	z := len(phi)
	block := t.outer[class*z*z:]
	for i, x := range phi {
		accumulate(block[i*z:i*z+i+1], phi[:i+1], x, sign)
	}
}
