package wire

import (
	"strconv"

	"gqlstream/ingest/event"
)

// cell is the type of an Arrow column's values, as far as it is read.
type cell uint8

const (
	cellNone cell = iota // a type that is not read
	cellNull             // every value null
	cellI8
	cellI16
	cellI32
	cellI64
	cellU8
	cellU16
	cellU32
	cellU64
	cellF32
	cellF64
	cellBool
	cellTime // int64 ticks
	cellUTF8
	cellLargeUTF8
	cellViewUTF8
)

// cellWidths are the bytes of one value in its main buffer.
var cellWidths = [...]int{
	cellI8: 1, cellI16: 2, cellI32: 4, cellI64: 8, cellU8: 1, cellU16: 2, cellU32: 4, cellU64: 8,
	cellF32: 4, cellF64: 8, cellTime: 8, cellUTF8: 4, cellLargeUTF8: 8, cellViewUTF8: 16,
}

func (c cell) isInt() bool   { return c >= cellI8 && c <= cellU64 }
func (c cell) isFloat() bool { return c == cellF32 || c == cellF64 }
func (c cell) isText() bool  { return c >= cellUTF8 }

// The types of Arrow columns (Schema.fbs), by number.
var arrowTypeNames = [...]string{
	"none", "null", "int", "floating point", "binary", "utf8", "bool", "decimal", "date",
	"time of day", "timestamp", "interval", "list", "struct", "union", "fixed size binary",
	"fixed size list", "map", "duration", "large binary", "large utf8", "large list",
	"run-end encoded", "binary view", "utf8 view", "list view", "large list view",
}

// kindOf returns the type of a Field table, the ticks a second of a timestamp,
// and what to call a type that is not read.
func kindOf(f flat) (c cell, ticks int64, name string) {
	number, t := f.number(2, 1), f.child(3)
	name = "type " + strconv.Itoa(int(number))
	if int(number) < len(arrowTypeNames) {
		name = arrowTypeNames[number]
	}
	switch number {
	case 1:
		c = cellNull
	case 2:
		c = intOf(t)
	case 3:
		switch t.number(0, 2) {
		case 1:
			c = cellF32
		case 2:
			c = cellF64
		default:
			name = "half-precision float"
		}
	case 5:
		c = cellUTF8
	case 6:
		c = cellBool
	case 10:
		if unit := t.number(0, 2); unit <= 3 {
			c, ticks = cellTime, [...]int64{1, 1e3, 1e6, 1e9}[unit]
		}
	case 20:
		c = cellLargeUTF8
	case 24:
		c = cellViewUTF8
	}
	return c, ticks, name
}

// intOf returns the type of an Int table.
func intOf(t flat) cell {
	signed := t.number(1, 1) != 0
	for i, bits := range [...]int32{8, 16, 32, 64} {
		if int32(t.number(0, 4)) == bits {
			if signed {
				return cellI8 + cell(i)
			}
			return cellU8 + cell(i)
		}
	}
	return cellNone
}

// readSchema reads the columns of a schema and returns the schema version that its metadata names.
func (t *table) readSchema(blk *block) (version string, p *event.Problem) {
	if blk.kind != headerSchema {
		return "", event.Problemf(event.Malformed, "byte %d: an Arrow stream begins with its schema", blk.at)
	}
	schema := blk.header
	if schema.number(0, 2) != 0 {
		return "", event.Problemf(event.Malformed, "byte %d: big-endian Arrow data is not read", blk.at)
	}
	for i := range schema.tables(2) {
		if kv := schema.table(2, i); kv.string(0) == schemaVersionKey {
			version = kv.string(1)
		}
	}
	n := schema.tables(1)
	if limit := len(fields[t.kind]) + max(t.k, event.AttributesPerEventMax); n > limit {
		return "", event.Problemf(event.TooLarge, "byte %d: %d columns, at most %d are allowed",
			blk.at, n, limit)
	}
	for i := range n {
		t.columns = append(t.columns, readColumn(schema.table(1, i)))
	}
	t.ready = true
	return version, nil
}

// readColumn reads a Field table.
func readColumn(f flat) column {
	c := column{name: f.string(0), list: -1}
	c.cell, c.ticks, c.typeName = kindOf(f)
	if f.number(2, 1) == 16 { // FixedSizeList
		c.list = int32(f.child(3).number(0, 4))
		if f.tables(5) == 1 {
			child := f.table(5, 0)
			c.cell, c.ticks, _ = kindOf(child)
			if c.list < 0 || !c.cell.isFloat() || child.has(4) {
				c.cell = cellNone
			}
		}
		return c
	}
	if f.has(4) {
		e := f.child(4)
		c.encoded, c.encoding, c.index = true, int64(e.number(0, 8)), cellI32
		if e.has(1) {
			c.index = intOf(e.child(1))
		}
		if !c.index.isInt() || !c.cell.isText() {
			c.cell, c.typeName = cellNone, "dictionary of "+c.typeName
		}
	}
	return c
}
