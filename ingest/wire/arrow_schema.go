package wire

import (
	"slices"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
)

// arrowType is the type of a column's values.
type arrowType struct {
	// kind of the cells: UintCell for all integers; AbsentCell for a type that is not read
	kind   CellKind
	width  int   // bytes of one value in its main buffer
	signed bool  // integers
	view   bool  // text by views
	ticks  int64 // ticks a second, of a timestamp
}

// The types of Arrow columns (Schema.fbs), by number.
var arrowTypeNames = [...]string{
	"none", "null", "int", "floating point", "binary", "utf8", "bool", "decimal", "date",
	"time of day", "timestamp", "interval", "list", "struct", "union", "fixed size binary",
	"fixed size list", "map", "duration", "large binary", "large utf8", "large list",
	"run-end encoded", "binary view", "utf8 view", "list view", "large list view",
}

// typeOf returns the type of a Field table, and a name for messages if it is not read.
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

// readSchema reads the columns of a schema, and refuses unknown, missing or repeated columns and
// wrong types.
func (t *table) readSchema(blk *block) *event.Problem {
	schema, version := blk.header, ""
	switch {
	case blk.kind != headerSchema:
		return blk.problem("an Arrow stream begins with its schema")
	case schema.number(0, 2) != 0:
		return blk.problem("big-endian Arrow data is not read")
	}
	for i := range schema.tables(2) {
		if kv := schema.table(2, i); kv.string(0) == schemaVersionKey {
			version = kv.string(1)
		}
	}
	if p := checkVersion(version); p != nil {
		return p
	}
	n := schema.tables(1)
	if limit := len(fields[t.kind]) + max(t.k, event.AttributesPerEventMax); n > limit {
		return event.Problemf(event.TooLarge, "byte %d: %d columns, at most %d are allowed",
			blk.at, n, limit)
	}
	given := uint32(0)
	for i := range n {
		c := newColumn(schema.table(1, i))
		if p := t.bindColumn(&c, i, &given); p != nil {
			return p
		}
		if c.kind == AbsentCell || !c.fits() {
			return event.Problemf(event.BadValue, "column %s has type %s, %s can be %s",
				Quote(c.name), c.typeName, c.spec.name, c.spec.holds.arrow)
		}
		t.columns = append(t.columns, c)
	}
	for _, s := range fields[t.kind] {
		if s.required && given>>s.field&1 == 0 {
			return event.Problemf(event.MissingField, "%v events without a column %q",
				t.kind, s.name)
		}
	}
	if !t.kind.Predicts() {
		return nil
	}
	return t.checkProbabilities(given)
}

// newColumn reads a Field table.
func newColumn(f flat) column {
	c := column{name: f.string(0)}
	c.arrowType, c.typeName = typeOf(f)
	switch encoding := f.child(4); {
	case f.number(2, 1) == 16 && f.tables(5) == 1: // FixedSizeList
		c.arrowType, _ = typeOf(f.table(5, 0))
		if c.list = int(int32(f.child(3).number(0, 4))); c.list <= 0 || c.kind != NumberCell ||
			f.table(5, 0).at(4) != 0 {
			c.kind = AbsentCell
		}
	case encoding.pos != 0:
		c.encoding = int64(encoding.number(0, 8))
		c.index = arrowType{
			kind:   UintCell,
			width:  4,
			signed: true,
		}
		if encoding.at(1) != 0 {
			c.index = intOf(encoding.child(1))
		}
		if c.index.kind != UintCell || c.kind != TextCell {
			c.kind = AbsentCell
		}
		c.typeName = "dictionary of " + c.typeName
		c.values = &column{name: c.name, arrowType: c.arrowType}
	}
	return c
}

// bindColumn finds the field of column i. given is the set of fields of earlier columns.
func (t *table) bindColumn(c *column, i int, given *uint32) *event.Problem {
	at := findField(t.kind, c.name)
	k, numbered := ProbabilityColumn(c.name)
	switch {
	case at >= 0 && fields[t.kind][at].field != fieldAttributes:
		c.spec = &fields[t.kind][at]
		if *given>>c.spec.field&1 != 0 {
			return event.Problemf(event.Malformed, "column %s: field %q given twice",
				Quote(c.name), c.spec.name)
		}
		*given |= 1 << c.spec.field
	case t.kind.Predicts() && numbered:
		if k >= t.k {
			return event.Problemf(event.WrongClasses, "column %s for %d classes",
				Quote(c.name), t.k)
		}
		for len(t.classes) < t.k {
			t.classes = append(t.classes, -1)
		}
		if t.classes[k] >= 0 {
			return event.Problemf(event.Malformed, "column %s given twice", Quote(c.name))
		}
		c.spec = specOf(t.kind, fieldProbabilities)
		c.numbered = true
		t.classes[k] = i
	case t.kind == event.KindVertex:
		c.spec = specOf(t.kind, fieldAttributes)
		t.attributes++
		if slices.ContainsFunc(t.columns,
			func(before column) bool { return before.name == c.name }) {
			return event.Problemf(event.Malformed, "column %s given twice", Quote(c.name))
		}
	default:
		hint := event.Nearest(c.name, fieldNames[t.kind])
		if strings.HasPrefix(c.name, "__index_level_") {
			hint = "it is the index of a pandas frame, write with preserve_index=False"
		}
		return event.Problemf(event.UnknownField, "%v events have no column %s: %s",
			t.kind, Quote(c.name), hint)
	}
	return nil
}

// ProbabilityColumn reads the k of a column name p0, p1 and so on; a k too large for an int becomes
// the largest int.
func ProbabilityColumn(name string) (k int, ok bool) {
	digits, ok := strings.CutPrefix(name, "p")
	if !ok || !areDigits(digits) || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	k, _ = strconv.Atoi(digits)
	return k, true
}

// checkProbabilities refuses tables of predictions without probabilities or classes.
func (t *table) checkProbabilities(given uint32) *event.Problem {
	lists := given>>fieldProbabilities&1 != 0
	switch {
	case !lists && len(t.classes) == 0 && given>>fieldClass&1 == 0:
		return event.Problemf(event.MissingField,
			"%v events without columns p0 to p%d, probabilities or class", t.kind, t.k-1)
	case lists && len(t.classes) > 0:
		return event.Problemf(event.BadValue,
			"columns probabilities and p0, p1, ... exclude each other")
	}
	for _, c := range t.columns {
		if c.list > 0 && c.list != t.k {
			return event.Problemf(event.WrongClasses,
				"column probabilities has lists of %d for %d classes",
				c.list, t.k)
		}
	}
	if k := slices.Index(t.classes, -1); k >= 0 {
		return event.Problemf(event.WrongClasses, "no column p%d for %d classes", k, t.k)
	}
	return nil
}

// fits reports whether the column has a valid type for its field.
func (c *column) fits() bool {
	switch {
	case c.spec.field == fieldProbabilities:
		return c.kind == NumberCell && c.numbered == (c.list == 0)
	case c.list > 0:
		return false
	case c.kind == NullCell:
		return true
	case c.spec.field == fieldConfig: // each text once: reading it costs its length
		return c.kind == TextCell && c.values == nil && !c.view
	}
	return c.spec.holds.accepts[arrowForm].holds(c.kind)
}
