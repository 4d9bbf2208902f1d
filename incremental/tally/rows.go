package tally

import (
	"slices"

	"gqlstream/ingest/event"
)

// rows numbers the calibration rows: labelled vertices of role calibrate that
// have a prediction. A row keeps its number while it lives; numbers are reused.
//
// Two orders are kept because two things are asked of them. Masses are stored by number, so
// that a label that comes or goes moves no other label's mass, in any community. Rows are
// read by vertex, so that a core that was restored, and numbers its rows anew, adds them up
// in the order of one that never stopped.
type rows struct {
	slot  []int32  // n: row of a vertex, -1 when it has none
	order []Vertex // vertices with a row, sorted: the order in which rows are read
	free  []int32
	size  int // rows ever in use at once: the length of a community's masses
	spare []Vertex
}

const noRow = -1

// take gives v a row. Its place in order is the caller's to mend (merge).
func (r *rows) take(v Vertex) int32 {
	if last := len(r.free) - 1; last >= 0 {
		r.slot[v] = r.free[last]
		r.free = r.free[:last]
		return r.slot[v]
	}
	r.slot[v] = int32(r.size)
	r.size++
	return r.slot[v]
}

// merge mends order after rows were taken and released: added is sorted and
// holds the vertices that have a row now and had none before.
func (r *rows) merge(added []Vertex, released bool) {
	if len(added) == 0 && !released {
		return
	}
	out := r.spare[:0]
	for _, v := range r.order {
		for len(added) > 0 && added[0] < v {
			out = append(out, added[0])
			added = added[1:]
		}
		if r.slot[v] != noRow {
			out = append(out, v)
		}
	}
	out = append(out, added...)
	r.spare, r.order = r.order, out
}

// rowChange is a calibration row that a step changed: its class and cells before
// and after. phi holds the cells of all kept families, one after the other. The cells
// before must be kept, since neither the view nor the sums have them any more, and every
// community that keeps masses has to take them out at the mass that it last gave the row.
type rowChange struct {
	v                       Vertex
	slotBefore, slotAfter   int32 // noRow when there was none, or is none
	classBefore, classAfter event.Class
	before, after           []float64
	gainsBefore, gainsAfter gains
}

// changeRow follows one vertex whose label or profile changed.
func (t *Tallies) changeRow(v Vertex, before, after *state) (added, released bool) {
	was, is := before.calibrates(), after.calibrates()
	if !was && !is {
		return false, false
	}
	if t.keep.Dual {
		t.changedSinceDual = append(t.changedSinceDual, v)
	}
	t.changed = slices.Grow(t.changed, 1)[:len(t.changed)+1] // with the memory of earlier steps
	change := &t.changed[len(t.changed)-1]
	change.v, change.slotBefore, change.slotAfter = v, noRow, noRow
	if was {
		change.slotBefore, change.classBefore = t.rows.slot[v], before.label.Class
		change.before = t.cells(change.before, before.profile)
		change.gainsBefore = t.gains(before.time)
		t.countRow(change.classBefore, change.before, change.gainsBefore, -1)
	}
	switch {
	case is && was:
		change.slotAfter = change.slotBefore
	case is:
		change.slotAfter = t.rows.take(v)
	default:
		t.rows.free = append(t.rows.free, t.rows.slot[v])
		t.rows.slot[v] = noRow
	}
	if is {
		change.classAfter = after.label.Class
		change.after = t.cells(change.after, after.profile)
		change.gainsAfter = t.gains(after.time)
		t.countRow(change.classAfter, change.after, change.gainsAfter, 1)
	}
	return is && !was, was && !is
}

// movesAll reports whether a change of a row is one of what all communities read: N, but where
// means are all that is read of cells, the labels of each class alone.
func (t *Tallies) movesAll(c rowChange) bool {
	return !t.keep.Means || c.slotBefore == noRow || c.slotAfter == noRow || c.classBefore != c.classAfter || c.gainsBefore != c.gainsAfter
}

// renewRow notes that all communities read another N, by this row.
func (t *Tallies) renewRow(c rowChange) {
	if !t.keep.Means || t.decay != nil {
		t.MoveAll()
		return
	}
	t.MoveShared(0)
	if c.slotBefore != noRow {
		t.renewed[c.classBefore] += 1 / float64(max(t.classN[c.classBefore], 1))
	}
	if c.slotAfter != noRow {
		t.renewed[c.classAfter] += 1 / float64(max(t.classN[c.classAfter], 1))
	}
}

// cells writes the cells of every kept family to dst, reusing its memory.
func (t *Tallies) cells(dst []float64, p profile) []float64 {
	dst = dst[:0]
	for kind := range family(families) {
		if t.keep.has(kind) {
			z := kind.cells(t.classes)
			dst = slices.Grow(dst, z)[:len(dst)+z]
			p.phi(dst[len(dst)-z:], kind)
		}
	}
	return dst
}

// countRow adds a row's cells to N, or takes them back.
func (t *Tallies) countRow(class event.Class, cells []float64, g gains, sign int) {
	t.classN[class] += uint64(sign)
	t.countOuter(class, cells, sign)
	for kind := range family(families) {
		if t.keep.has(kind) {
			z := kind.cells(t.classes)
			accumulate(t.n[kind][int(class)*z:(int(class)+1)*z], cells[:z], g.one, sign)
			if t.decay != nil {
				accumulate(t.decay.n2[kind][int(class)*z:(int(class)+1)*z], cells[:z], g.square, sign)
			}
			cells = cells[z:]
		}
	}
}

// countOuter adds a row's second moments to outer, or takes them back: the lower triangle is kept.
func (t *Tallies) countOuter(class event.Class, cells []float64, sign int) {
	if t.outer == nil {
		return
	}
	z, phi := t.soft.z, cells[t.soft.cell:t.soft.cell+t.soft.z]
	block := t.outer[int(class)*z*z:]
	for i, x := range phi {
		accumulate(block[i*z:i*z+i+1], phi[:i+1], x, sign)
	}
}
