package event

import (
	"strconv"
	"strings"
)

// bindSchema finds out which field each column is, and refuses what is not known,
// missing, given twice or of the wrong type.
func (t *table) bindSchema() *Problem {
	t.by = [fieldCount]int{}
	t.classes = t.classes[:0]
	for i := range t.columns {
		c := &t.columns[i]
		if p := t.bindColumn(i, c); p != nil {
			return p
		}
		if c.cell == cellNone || !fitsField(t.kind, c) {
			return problemf(BadValue, "column %s has type %s, %s can be %s",
				quote(c.name), c.describe(),
				fieldName(t.kind, c.field), arrowTypes(t.kind, c.field))
		}
		if c.encoded {
			if p := t.addDictionary(c); p != nil {
				return p
			}
		}
	}
	for _, s := range fields[t.kind] {
		if s.required && t.by[s.field] == 0 {
			return problemf(MissingField, "%v events without a column %q", t.kind, s.name)
		}
	}
	if t.kind == KindPrediction {
		return t.checkProbabilities()
	}
	return nil
}

// bindColumn finds out which field column i is.
func (t *table) bindColumn(i int, c *column) *Problem {
	at := findField(t.kind, c.name, i)
	if at >= 0 {
		c.field = fields[t.kind][at].field
	}
	switch {
	case at >= 0 && !(c.field == fieldAttributes):
		if t.by[c.field] != 0 {
			return problemf(Malformed, "column %s: field %q given twice",
				quote(c.name), fields[t.kind][at].name)
		}
		t.by[c.field] = i + 1
		return nil
	case t.kind == KindPrediction && isClassColumn(c.name):
		k, err := strconv.Atoi(c.name[1:])
		if err != nil || k >= t.k {
			return problemf(WrongClasses, "column %s for %d classes", quote(c.name), t.k)
		}
		c.field, c.class = fieldProbabilities, k+1
		return nil
	case t.kind == KindVertex:
		c.field = fieldAttributes
		t.attributes++
		for j := range i {
			if t.columns[j].name == c.name {
				return problemf(Malformed, "column %s given twice", quote(c.name))
			}
		}
		return nil
	}
	hint := Nearest(c.name, fieldNames(t.kind))
	if strings.HasPrefix(c.name, "__index_level_") {
		hint = "it is the index of a pandas frame, write with preserve_index=False"
	}
	return problemf(UnknownField, "%v events have no column %s: %s", t.kind, quote(c.name), hint)
}

// isClassColumn reports whether a name is p0, p1 and so on.
func isClassColumn(name string) bool {
	if len(name) < 2 || name[0] != 'p' || (name[1] == '0' && len(name) > 2) {
		return false
	}
	return strings.Trim(name[1:], "0123456789") == ""
}

// checkProbabilities refuses tables that do not say what is predicted, and lists
// the columns p0 to p{K-1} by class.
func (t *table) checkProbabilities() *Problem {
	for i := range t.columns {
		if c := &t.columns[i]; c.class > 0 {
			for len(t.classes) < t.k {
				t.classes = append(t.classes, -1)
			}
			if t.classes[c.class-1] >= 0 {
				return problemf(Malformed, "column %s given twice", quote(c.name))
			}
			t.classes[c.class-1] = i
		}
	}
	list := t.by[fieldProbabilities]
	switch {
	case list == 0 && len(t.classes) == 0 && t.by[fieldClass] == 0:
		return problemf(MissingField,
			"prediction events without columns p0 to p%d, probabilities or class", t.k-1)
	case list > 0 && len(t.classes) > 0:
		return problemf(BadValue, "columns probabilities and p0, p1, ... exclude each other")
	case list > 0 && int(t.columns[list-1].list) != t.k:
		return problemf(WrongClasses, "column probabilities has lists of %d for %d classes",
			t.columns[list-1].list, t.k)
	}
	for k, i := range t.classes {
		if i < 0 {
			return problemf(WrongClasses, "no column p%d for %d classes", k, t.k)
		}
	}
	return nil
}

// describe returns what to call the type of a column.
func (c *column) describe() string {
	switch {
	case c.encoded && c.cell != cellNone:
		return "dictionary of " + c.typeName
	case c.list >= 0:
		return "fixed size list"
	}
	return c.typeName
}

// fieldName returns the canonical name of a field of a kind.
func fieldName(kind Kind, f field) string {
	for _, s := range fields[kind] {
		if s.field == f {
			return s.name
		}
	}
	return ""
}

// arrowTypes returns the types that the column of a field may have.
func arrowTypes(kind Kind, f field) string {
	for _, s := range fields[kind] {
		if s.field == f {
			return s.arrow
		}
	}
	return ""
}

// fitsField reports whether a column has one of the types of its field.
func fitsField(kind Kind, c *column) bool {
	if c.field == fieldProbabilities {
		return c.cell.isFloat() && (c.class > 0) == (c.list < 0)
	}
	if c.list >= 0 {
		return false
	}
	if c.cell == cellNull {
		return true
	}
	switch c.field {
	case fieldSrc, fieldDst, fieldVertex, fieldVersion, fieldCommunity:
		return c.cell.isText() || c.cell.isInt()
	case fieldOp:
		return c.cell.isText() || kind != KindControl && (c.cell == cellBool || c.cell.isInt())
	case fieldWeight:
		return c.cell.isFloat() || c.cell.isInt()
	case fieldTime:
		return c.cell == cellTime || c.cell.isInt() || c.cell.isFloat() || c.cell.isText()
	case fieldTTL:
		return c.cell.isInt() || c.cell.isFloat() || c.cell.isText()
	case fieldClass:
		return c.cell.isInt() || c.cell.isText()
	case fieldMultiplicity:
		return c.cell.isInt()
	case fieldErase:
		return c.cell == cellBool
	case fieldAttributes:
		return c.cell.isText() || c.cell.isInt() || c.cell.isFloat() || c.cell == cellBool
	case fieldConfig: // each text once: reading it costs what it is long
		return c.cell == cellUTF8 && !c.encoded || c.cell == cellLargeUTF8 && !c.encoded
	default: // role
		return c.cell.isText()
	}
}
