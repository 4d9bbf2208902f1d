package wire

import (
	"strconv"

	"gqlstream/ingest/event"
)

// arrowType is the type of a column's values.
type arrowType struct {
	kind   CellKind // of what they become: UintCell of all integers; AbsentCell of a type that is not read
	width  int      // bytes of one value in its main buffer
	signed bool     // integers
	view   bool     // text by views
	ticks  int64    // a second, of a timestamp
}

// The types of Arrow columns (Schema.fbs), by number.
var arrowTypeNames = [...]string{
	"none", "null", "int", "floating point", "binary", "utf8", "bool", "decimal", "date",
	"time of day", "timestamp", "interval", "list", "struct", "union", "fixed size binary",
	"fixed size list", "map", "duration", "large binary", "large utf8", "large list",
	"run-end encoded", "binary view", "utf8 view", "list view", "large list view",
}

// typeOf returns the type of a Field table, and what to call one that is not read.
func typeOf(f flat) (of arrowType, name string) {
	number, t := f.number(2, 1), f.child(3)
	name = "type " + strconv.Itoa(int(number))
	if int(number) < len(arrowTypeNames) {
		name = arrowTypeNames[number]
	}
	switch number {
	case 1:
		of.kind = NullCell
	case 2:
		of = intOf(t)
	case 3:
		if precision := t.number(0, 2); precision == 1 || precision == 2 {
			of = arrowType{kind: NumberCell, width: 4 * int(precision)}
		} else {
			name = "half-precision float"
		}
	case 5:
		of = arrowType{kind: TextCell, width: 4}
	case 6:
		of.kind = BoolCell
	case 10:
		if unit := t.number(0, 2); unit <= 3 {
			of = arrowType{kind: TimeCell, width: 8, ticks: [...]int64{1, 1e3, 1e6, 1e9}[unit]}
		}
	case 20:
		of = arrowType{kind: TextCell, width: 8}
	case 24:
		of = arrowType{kind: TextCell, width: 16, view: true}
	}
	return of, name
}

// intOf returns the type of an Int table.
func intOf(t flat) (of arrowType) {
	switch bits := int(int32(t.number(0, 4))); bits {
	case 8, 16, 32, 64:
		of = arrowType{kind: UintCell, width: bits / 8, signed: t.number(1, 1) != 0}
	}
	return of
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
	c.arrowType, c.typeName = typeOf(f)
	if f.number(2, 1) == 16 { // FixedSizeList
		c.list = int32(f.child(3).number(0, 4))
		if f.tables(5) == 1 {
			child := f.table(5, 0)
			c.arrowType, _ = typeOf(child)
			if c.list < 0 || c.kind != NumberCell || child.has(4) {
				c.kind = AbsentCell
			}
		}
		return c
	}
	if f.has(4) {
		e := f.child(4)
		c.encoded, c.encoding, c.index = true, int64(e.number(0, 8)), arrowType{kind: UintCell, width: 4, signed: true}
		if e.has(1) {
			c.index = intOf(e.child(1))
		}
		if c.index.kind != UintCell || c.kind != TextCell {
			c.kind, c.typeName = AbsentCell, "dictionary of "+c.typeName
		}
	}
	return c
}
