package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"gqlstream/ingest/event"
)

// Encode returns the events [from, to) of a kind of b as the payload of one message, and its
// content type: Arrow, or NDJSON for events that Arrow cannot express. It panics if the range is
// not inside the batch.
func Encode(kind event.Kind, b *event.Batch, from, to int) (payload []byte, contentType string) {
	if payload, err := EncodeArrow(kind, b, from, to); err == nil {
		return payload, Arrow
	}
	for i := from; i < to; i++ {
		payload = append(AppendJSON(payload, b, kind, i), '\n')
	}
	return payload, NDJSON
}

// EncodeArrow returns the events [from, to) of a kind of b as the payload of one Arrow message: a
// schema and one record batch. Messages of 1,000 to 4,000 events are the fastest. Ids are uint64 if
// all ids of a column are integers, else text. Columns with only default values are left out.
//
// It returns an error for vertices with attributes, whose sets of columns differ, and for
// predictions with different K: send those as JSON. It panics if the range is not inside the batch.
func EncodeArrow(kind event.Kind, b *event.Batch, from, to int) ([]byte, error) {
	e := arrowEncoder{cells: make([]Cell, to-from)}
	for i := range fields[kind] {
		s := &fields[kind][i]
		for j := range e.cells {
			e.cells[j] = Cell{}
			s.get(s.value(b, from+j), &e.cells[j])
		}
		if !e.addField(s) {
			return nil, fmt.Errorf("encode %v events %d to %d: they have different %s",
				kind, from, to, s.name)
		}
	}
	return e.encode()
}

// arrowEncoder collects the columns of one record batch.
type arrowEncoder struct {
	cells   []Cell // of the current column
	fields  []arrow.Field
	columns []arrow.Array
}

// encode writes the columns as a stream, and releases them.
func (e *arrowEncoder) encode() ([]byte, error) {
	metadata := arrow.NewMetadata([]string{schemaVersionKey}, []string{schemaVersion})
	schema := arrow.NewSchema(e.fields, &metadata)
	record := array.NewRecord(schema, e.columns, int64(len(e.cells)))
	defer record.Release()
	for _, c := range e.columns {
		c.Release()
	}
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := errors.Join(w.Write(record), w.Close()); err != nil {
		return nil, fmt.Errorf("write Arrow: %w", err)
	}
	return out.Bytes(), nil
}

// addField adds the columns of a field, or returns false if a table cannot hold its values.
func (e *arrowEncoder) addField(s *fieldSpec) bool {
	switch s.field {
	case fieldAttributes:
		return !slices.ContainsFunc(e.cells, func(c Cell) bool { return !c.Missing() })
	case fieldProbabilities:
		lists := slices.Clone(e.cells)
		if slices.ContainsFunc(lists,
			func(c Cell) bool { return len(c.List) != len(lists[0].List) }) {
			return false
		}
		for k := 0; len(lists) > 0 && k < len(lists[0].List); k++ {
			for i := range lists {
				e.cells[i] = Cell{Kind: NumberCell, Number: lists[i].List[k]}
			}
			e.add("p" + strconv.Itoa(k))
		}
	default:
		e.add(s.name)
	}
	return true
}

// add adds a column of the current cells, unless all are empty. Its kind is the last of theirs:
// numbers among texts become text, as ids may.
func (e *arrowEncoder) add(name string) {
	kind := AbsentCell
	for i := range e.cells {
		kind = max(kind, e.cells[i].Kind)
	}
	if kind == AbsentCell {
		return
	}
	builder := array.NewBuilder(memory.DefaultAllocator, arrowTypes[kind])
	defer builder.Release()
	builder.Reserve(len(e.cells))
	for i := range e.cells {
		if c := &e.cells[i]; c.Missing() {
			builder.AppendNull()
		} else {
			c.appendTo(builder)
		}
	}
	column := builder.NewArray()
	e.fields = append(e.fields,
		arrow.Field{Name: name, Type: column.DataType(), Nullable: column.NullN() > 0})
	e.columns = append(e.columns, column)
}

// arrowTypes are the types of columns by kind of cell. A column of only nulls is a column of
// classes in which every label is withdrawn.
var arrowTypes = map[CellKind]arrow.DataType{
	NullCell:   arrow.PrimitiveTypes.Uint64,
	TextCell:   arrow.BinaryTypes.String,
	UintCell:   arrow.PrimitiveTypes.Uint64,
	NumberCell: arrow.PrimitiveTypes.Float64,
	BoolCell:   arrow.FixedWidthTypes.Boolean,
	TimeCell:   arrow.FixedWidthTypes.Timestamp_ns,
	ObjectCell: arrow.BinaryTypes.String,
}

// appendTo appends the value of the cell to a column.
func (c *Cell) appendTo(column array.Builder) {
	switch column := column.(type) {
	case *array.StringBuilder:
		if c.Kind == UintCell {
			column.Append(c.String())
		} else {
			column.Append(c.Text)
		}
	case *array.Uint64Builder:
		column.Append(c.Integer)
	case *array.Float64Builder:
		column.Append(c.Number)
	case *array.BooleanBuilder:
		column.Append(c.Integer != 0)
	case *array.TimestampBuilder:
		column.Append(arrow.Timestamp(c.Integer))
	}
}
