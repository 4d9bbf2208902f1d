package event

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// chunkRows is how many rows are turned at a time: few enough that what is known
// of them stays in the first caches.
const chunkRows = 256

// chunk is some rows of the record batch at hand, column by column.
type chunk struct {
	table    *table
	first, n int                 // rows [first, first+n)
	problems [chunkRows]*Problem // why a row is refused
	refused  int                 // rows with a problem

	source, target [chunkRows]ID
	times          [chunkRows]Time
	second         [chunkRows]bool // the second operation: remove, leave
	weights        [chunkRows]float64
	lifetimes      [chunkRows]time.Duration
	classes        [chunkRows]Class
	counts         [chunkRows]uint32
	texts, names   [chunkRows]string
	probabilities  []float64 // n x K
}

// begin sets the chunk on rows that begin with first.
func (x *chunk) begin(t *table, first, n int) {
	x.table, x.first, x.n = t, first, n
	if x.refused > 0 {
		clear(x.problems[:])
		x.refused = 0
	}
}

// refuse keeps the first problem of row i of the chunk.
func (x *chunk) refuse(i int, p *Problem) {
	if x.problems[i] == nil {
		x.problems[i] = p
		x.refused++
	}
}

// required refuses the rows where c is null.
func (x *chunk) required(c *column, name string) {
	if c.nulls {
		for i := range x.n {
			if c.null(x.first + i) {
				x.refuse(i, missing(x.table.kind, name))
			}
		}
	}
}

// ids reads the vertex ids of a required column.
func (d *Decoder) ids(c *column, name string, dst *[chunkRows]ID) {
	x := &d.rows
	x.required(c, name)
	switch {
	case c.cell == cellNull:
	case c.cell.isText():
		for i := range x.n {
			if !c.null(x.first + i) {
				id, p := d.parseID(c.text(x.first + i))
				if dst[i] = id; p != nil {
					x.refuse(i, p)
				}
			}
		}
	case c.cell == cellU64:
		data := c.data[8*x.first:]
		for i := range dst[:x.n] {
			dst[i] = ID{Number: binary.LittleEndian.Uint64(data[8*i:])}
		}
	case c.cell == cellU32:
		data := c.data[4*x.first:]
		for i := range dst[:x.n] {
			dst[i] = ID{Number: uint64(binary.LittleEndian.Uint32(data[4*i:]))}
		}
	default:
		for i := range x.n {
			v, negative := intAt(c.cell, c.data, x.first+i)
			if dst[i] = NumberID(v); negative {
				x.refuse(i, problemf(BadID, "vertex id -%d is negative", v))
			}
		}
	}
}

// present fills dst with otherwise and reports whether there is a column to read.
func present[T any](x *chunk, c *column, dst *[chunkRows]T, otherwise T) bool {
	for i := range dst[:x.n] {
		dst[i] = otherwise
	}
	return c != nil && c.cell != cellNull
}

// floats reads numbers. Null is what dst holds already.
func (x *chunk) floats(c *column, dst *[chunkRows]float64) {
	if c.cell == cellF64 && !c.nulls {
		data := c.data[8*x.first:]
		for i := range dst[:x.n] {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		}
		return
	}
	for i := range x.n {
		if !c.null(x.first + i) {
			dst[i] = floatAt(c.cell, c.data, x.first+i)
		}
	}
}

// readTimes reads the times of the rows; received stands for those not given.
func (x *chunk) readTimes(received Time) {
	c := x.table.column(fieldTime)
	if !present(x, c, &x.times, received) {
		return
	}
	if c.cell == cellTime && !c.nulls {
		x.readTimestamps(c)
		return
	}
	for i := range x.n {
		row := x.first + i
		if c.null(row) {
			continue
		}
		t, p := c.time(row)
		if t != 0 {
			x.times[i] = t
		}
		if p != nil {
			x.refuse(i, p)
		}
	}
}

// readTimestamps reads the times of the rows from timestamps without nulls.
func (x *chunk) readTimestamps(c *column) {
	data := c.data[8*x.first:]
	nanos := 1e9 / c.ticks
	limit := int64(TimeMax) / nanos
	for i := range x.times[:x.n] {
		v := int64(binary.LittleEndian.Uint64(data[8*i:]))
		if v < -limit || v > limit {
			_, p := c.time(x.first + i)
			x.refuse(i, p)
		} else if v != 0 {
			x.times[i] = Time(v * nanos)
		}
	}
}

// time returns the time in row i, which is not null.
func (c *column) time(i int) (Time, *Problem) {
	switch {
	case c.cell.isText():
		return parseTime(c.text(i))
	case c.cell.isFloat():
		return secondsTime(floatAt(c.cell, c.data, i))
	}
	ticks := int64(1)
	if c.cell == cellTime {
		ticks = c.ticks
	}
	nanos := uint64(1e9 / ticks)
	v, negative := intAt(c.cell, c.data, i)
	if v > uint64(TimeMax)/nanos {
		return 0, problemf(BadTime, "%d ticks of 1/%d s are out of range", v, ticks)
	}
	if negative {
		return -Time(v * nanos), nil
	}
	return Time(v * nanos), nil
}

// readLifetimes reads the times to live of the rows, 0 for those not given.
func (x *chunk) readLifetimes() {
	c := x.table.column(fieldTTL)
	if !present(x, c, &x.lifetimes, 0) {
		return
	}
	for i := range x.n {
		row := x.first + i
		if c.null(row) {
			continue
		}
		var p *Problem
		if c.cell.isText() {
			x.lifetimes[i], p = parseTTL(c.text(row))
		} else {
			x.lifetimes[i], p = secondsTTL(floatAt(c.cell, c.data, row))
		}
		if p != nil {
			x.refuse(i, p)
		}
	}
}

// readOps reads the operations of the rows, of edges and members: the first of
// the two when not given. As a number the second is 1, as a boolean true.
func (x *chunk) readOps() {
	c := x.table.column(fieldOp)
	if !present(x, c, &x.second, false) {
		return
	}
	for i := range x.n {
		row := x.first + i
		if c.null(row) {
			continue
		}
		switch {
		case c.cell == cellBool:
			x.second[i] = c.bool(row)
		case c.cell.isInt():
			v, negative := intAt(c.cell, c.data, row)
			if x.second[i] = v == 1; v > 1 || negative {
				x.refuse(i, problemf(BadValue, "op must be 0 or 1"))
			}
		default:
			s, words := c.text(row), opWords[x.table.kind]
			at, ok := word(words, s)
			if x.second[i] = at == 1; !ok {
				x.refuse(i, problemf(BadValue, "op %s: %s", quote(s), Nearest(s, words)))
			}
		}
	}
}

// readClasses reads the classes of the rows, NoClass for those not given.
func (d *Decoder) readClasses() {
	x := &d.rows
	c := x.table.column(fieldClass)
	if !present(x, c, &x.classes, NoClass) {
		return
	}
	for i := range x.n {
		row := x.first + i
		if c.null(row) {
			continue
		}
		var p *Problem
		if c.cell.isText() {
			x.classes[i], p = d.parseClass(c.text(row))
		} else if v, negative := intAt(c.cell, c.data, row); negative {
			p = problemf(UnknownClass, "class -%d, null withdraws a label", v)
		} else {
			x.classes[i], p = d.indexClass(v)
		}
		if p != nil {
			x.refuse(i, p)
		}
	}
}

// readCounts reads the multiplicities of the rows, 1 for those not given.
func (x *chunk) readCounts() {
	c := x.table.column(fieldMultiplicity)
	if !present(x, c, &x.counts, 1) {
		return
	}
	for i := range x.n {
		if row := x.first + i; !c.null(row) {
			v, negative := intAt(c.cell, c.data, row)
			if negative || v > math.MaxUint32 {
				x.refuse(i, problemf(BadValue, "multiplicity must be an integer from 0 to %d",
					uint32(math.MaxUint32)))
				continue
			}
			x.counts[i] = uint32(v)
		}
	}
}

// readNames reads the names of communities or versions, "" for those not given.
func (d *Decoder) readNames(b *Batch, c *column, what string) {
	x := &d.rows
	if !present(x, c, &x.names, "") {
		return
	}
	for i := range x.n {
		row := x.first + i
		if c.null(row) {
			continue
		}
		if c.cell.isText() {
			x.names[i] = c.text(row)
			if p := d.checkName(what, x.names[i]); p != nil {
				x.refuse(i, p)
			}
			continue
		}
		v, negative := intAt(c.cell, c.data, row)
		if negative {
			x.refuse(i, problemf(BadID, "%s -%d is negative", what, v))
		}
		var digits [20]byte
		x.names[i] = b.keep(strconv.AppendUint(digits[:0], v, 10))
	}
}

// readTexts reads words or documents, "" for those not given.
func (x *chunk) readTexts(f field) {
	c := x.table.column(f)
	if !present(x, c, &x.texts, "") {
		return
	}
	for i := range x.n {
		if row := x.first + i; !c.null(row) {
			if x.texts[i] = c.text(row); !utf8.ValidString(x.texts[i]) {
				x.refuse(i, problemf(BadValue, "%s is not UTF-8", fieldName(x.table.kind, f)))
			}
		}
	}
}
