package wire

import (
	"cmp"
	"slices"

	"gqlstream/ingest/event"
)

// Column is a possible column of a file of some kind. The first name is ours.
type Column struct {
	Names    []string
	Aliases  []string // other names in the form of PlainName, the likeliest first
	Required bool
}

// Columns returns the columns of a kind: one for each of its fields, in their order. Predictions
// and posts may also have p0, p1, ..., and vertices any other column.
func Columns(kind event.Kind) []Column {
	all := make([]Column, len(fields[kind]))
	for i, s := range fields[kind] {
		all[i] = Column{Names: s.columns, Required: s.required}
		if all[i].Names == nil {
			all[i].Names = slices.DeleteFunc([]string{s.name, s.alias},
				func(s string) bool { return s == "" })
		}
		if kind == event.KindVertex && s.field != fieldVertex {
			continue // every other column is an attribute
		}
		for _, name := range all[i].Names {
			all[i].Aliases = append(all[i].Aliases, PlainName(name))
		}
		all[i].Aliases = append(all[i].Aliases, aliasesOf(kind, s.field)...)
	}
	return all
}

// RowDefaults are the values for rows of a file that do not give their own.
type RowDefaults struct {
	Kind    event.Kind
	Untyped bool   // every value is text
	Version string // of predictions and posts without one
}

// classSlot is the column of the class of a label.
var classSlot = slices.IndexFunc(fields[event.KindLabel],
	func(s fieldSpec) bool { return s.field == fieldClass })

// NoColumn means that the problem is not in one column.
const NoColumn = -1

// Problems of rows without meaning, which are left out: an empty label withdraws nothing.
var (
	Blank    = event.Problemf(event.MissingField, "no label")
	MinusOne = event.Problemf(event.MissingField, "the label is -1, which no class is called")
)

// DecodeRow appends the event of a file's row to b and returns its time, or else the column with
// the problem and the problem, or Blank or MinusOne. The cells are those of Columns, followed by
// further columns with their names. The batch copies the memory that the cells reference.
func (d *Decoder) DecodeRow(
	row RowDefaults, cells []Cell, names []string, b *event.Batch,
) (event.Time, int, *event.Problem) {
	d.batch = b
	m := Message{Kind: row.Kind}
	r := d.appendEvent(row.Kind)
	column, p := d.row(row, r, cells, names)
	if p == nil {
		p = d.finish(&m, r, 0)
	}
	if p != nil {
		b.Truncate(row.Kind, r.at)
		return 0, column, p
	}
	copyLists(b, row.Kind, r.at)
	_, at := b.Stamp(row.Kind, r.at)
	return at, NoColumn, nil
}

// row reads a row into the draft, or returns the column with the problem.
func (d *Decoder) row(
	row RowDefaults, r *draft, cells []Cell, names []string,
) (int, *event.Problem) {
	f := fileForm
	if row.Untyped {
		f = textForm
	}
	for i := range fields[row.Kind] {
		if p := d.setCell(f, &fields[row.Kind][i], r, &cells[i]); p != nil {
			return i, p
		}
	}
	if row.Kind == event.KindLabel && d.batch.Labels[r.at].Class == event.NoClass {
		if c := &cells[classSlot]; c.unknown() {
			return NoColumn, Blank
		}
		return NoColumn, MinusOne
	}
	if at, p := d.setFurther(f, r, cells, names); p != nil || !row.Kind.Predicts() {
		return at, p
	}
	version := specOf(row.Kind, fieldVersion).value(d.batch, r.at).(*string)
	*version = cmp.Or(*version, row.Version)
	if r.has(fieldProbabilities) {
		r.seen &^= 1 << fieldClass // the probabilities are more precise
	}
	return NoColumn, nil
}

// setCell sets a field from the cell of its column. An empty cell is refused if the field is
// required; the weight of a removed edge is ignored.
func (d *Decoder) setCell(f form, s *fieldSpec, r *draft, c *Cell) *event.Problem {
	removed := r.kind == event.KindEdge && d.batch.Edges[r.at].Remove
	switch {
	case removed && s.field == fieldWeight:
		return nil
	case s.field == fieldClass && s.required && c.Kind != AbsentCell && c.unknown():
		c = &Cell{Kind: NullCell}
	case c.Missing() && s.required:
		return s.unfit(f, c)
	case c.unknown() && s.required:
		return s.unfit(f, &Cell{Kind: NullCell})
	case c.unknown() && !s.required && s.field != fieldWeight, c.Missing():
		return nil
	}
	return d.set(f, s, r, c)
}

// setFurther sets the probabilities or attributes that have columns of their own, or returns the
// column with the problem.
func (d *Decoder) setFurther(
	f form, r *draft, cells []Cell, names []string,
) (int, *event.Problem) {
	base := len(fields[r.kind])
	switch r.kind {
	case event.KindPrediction, event.KindPost:
		if !slices.ContainsFunc(cells[base:], func(c Cell) bool { return !c.Missing() }) {
			return NoColumn, nil
		}
		list := Cell{Kind: ListCell, List: d.probabilities[:0]}
		if second := base + 1; d.k == 2 && len(cells) > second && names[base] == "" {
			x, ok := cells[second].Float()
			if !ok {
				return second, (&fieldSpec{holds: &numberType}).unfit(f, &cells[second])
			}
			list.Append(1-x, true) // p1 is the only column
			list.Append(x, true)
			return NoColumn, d.set(fileForm, specOf(r.kind, fieldProbabilities), r, &list)
		}
		for i := base; i < len(cells); i++ {
			x, ok := cells[i].Float()
			if !ok {
				return i, (&fieldSpec{holds: &numberType}).unfit(f, &cells[i])
			}
			list.Append(x, true)
		}
		d.probabilities = list.List
		return NoColumn, d.set(fileForm, specOf(r.kind, fieldProbabilities), r, &list)
	case event.KindVertex:
		for i := base; i < len(cells) && !d.batch.Vertices[r.at].Erase; i++ {
			if !cells[i].Missing() { // a blank takes no attribute away
				if p := d.attribute(r, f, names[i], &cells[i]); p != nil {
					return i, p
				}
			}
		}
	}
	return NoColumn, nil
}

// AppendRow appends the cells of a row that are not empty, as a JSON object.
func AppendRow(dst []byte, cells []Cell, name func(i int) string) []byte {
	dst = append(dst, '{')
	n := len(dst)
	for i := range cells {
		if c := &cells[i]; !c.Missing() {
			dst = appendCell(appendKey(dst, n, name(i)), c)
		}
	}
	return append(dst, '}')
}
