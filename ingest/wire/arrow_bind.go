package wire

import (
	"strconv"
	"strings"

	"gqlstream/ingest/event"
)

// bindSchema finds out which field each column is, and refuses what is not known,
// missing, given twice or of the wrong type.
func (t *table) bindSchema() *event.Problem {
	t.by = [fieldCount]int{}
	t.classes = t.classes[:0]
	for i := range t.columns {
		c := &t.columns[i]
		if p := t.bindColumn(i, c); p != nil {
			return p
		}
		if c.kind == AbsentCell || !c.fits() {
			return event.Problemf(event.BadValue, "column %s has type %s, %s can be %s",
				Quote(c.name), c.describe(), c.spec.name, c.spec.holds.arrow)
		}
		if c.encoded {
			if p := t.addDictionary(c); p != nil {
				return p
			}
		}
	}
	for _, s := range fields[t.kind] {
		if s.required && t.by[s.field] == 0 {
			return event.Problemf(event.MissingField, "%v events without a column %q", t.kind, s.name)
		}
	}
	if t.kind == event.KindPrediction {
		return t.checkProbabilities()
	}
	return nil
}

// bindColumn finds out which field column i is.
func (t *table) bindColumn(i int, c *column) *event.Problem {
	at := findField(t.kind, c.name, i)
	if at >= 0 {
		c.bindTo(&fields[t.kind][at])
	}
	k, numbered := ProbabilityColumn(c.name)
	switch {
	case at >= 0 && !(c.field == fieldAttributes):
		if t.by[c.field] != 0 {
			return event.Problemf(event.Malformed, "column %s: field %q given twice",
				Quote(c.name), fields[t.kind][at].name)
		}
		t.by[c.field] = i + 1
		return nil
	case t.kind == event.KindPrediction && numbered:
		if k >= t.k {
			return event.Problemf(event.WrongClasses, "column %s for %d classes", Quote(c.name), t.k)
		}
		c.bindTo(specOf(t.kind, fieldProbabilities))
		c.class = k + 1
		return nil
	case t.kind == event.KindVertex:
		c.bindTo(specOf(t.kind, fieldAttributes))
		t.attributes++
		for j := range i {
			if t.columns[j].name == c.name {
				return event.Problemf(event.Malformed, "column %s given twice", Quote(c.name))
			}
		}
		return nil
	}
	hint := event.Nearest(c.name, fieldNames[t.kind])
	if strings.HasPrefix(c.name, "__index_level_") {
		hint = "it is the index of a pandas frame, write with preserve_index=False"
	}
	return event.Problemf(event.UnknownField, "%v events have no column %s: %s", t.kind, Quote(c.name), hint)
}

// ProbabilityColumn reads the k of a column name p0, p1 and so on; one that is too large
// for an int is the largest int.
func ProbabilityColumn(name string) (k int, ok bool) {
	digits, ok := strings.CutPrefix(name, "p")
	if !ok || !areDigits(digits) || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	k, _ = strconv.Atoi(digits)
	return k, true
}

// checkProbabilities refuses tables that do not say what is predicted, and lists
// the columns p0 to p{K-1} by class.
func (t *table) checkProbabilities() *event.Problem {
	for i := range t.columns {
		if c := &t.columns[i]; c.class > 0 {
			for len(t.classes) < t.k {
				t.classes = append(t.classes, -1)
			}
			if t.classes[c.class-1] >= 0 {
				return event.Problemf(event.Malformed, "column %s given twice", Quote(c.name))
			}
			t.classes[c.class-1] = i
		}
	}
	list := t.by[fieldProbabilities]
	switch {
	case list == 0 && len(t.classes) == 0 && t.by[fieldClass] == 0:
		return event.Problemf(event.MissingField,
			"prediction events without columns p0 to p%d, probabilities or class", t.k-1)
	case list > 0 && len(t.classes) > 0:
		return event.Problemf(event.BadValue, "columns probabilities and p0, p1, ... exclude each other")
	case list > 0 && int(t.columns[list-1].list) != t.k:
		return event.Problemf(event.WrongClasses, "column probabilities has lists of %d for %d classes",
			t.columns[list-1].list, t.k)
	}
	for k, i := range t.classes {
		if i < 0 {
			return event.Problemf(event.WrongClasses, "no column p%d for %d classes", k, t.k)
		}
	}
	return nil
}

// describe returns what to call the type of a column.
func (c *column) describe() string {
	switch {
	case c.encoded && c.kind != AbsentCell:
		return "dictionary of " + c.typeName
	case c.list >= 0:
		return "fixed size list"
	}
	return c.typeName
}

// bindTo makes the column that of a field.
func (c *column) bindTo(s *fieldSpec) { c.spec, c.field = s, s.field }

// fits reports whether the column has one of the types of its field.
func (c *column) fits() bool {
	switch {
	case c.field == fieldProbabilities:
		return c.kind == NumberCell && (c.class > 0) == (c.list < 0)
	case c.list >= 0:
		return false
	case c.kind == NullCell:
		return true
	case c.field == fieldConfig: // each text once: reading it costs what it is long
		return c.kind == TextCell && !c.encoded && !c.view
	}
	return c.spec.holds.accepts[arrowForm].holds(c.kind)
}
