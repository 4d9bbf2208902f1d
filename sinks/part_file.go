package sinks

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"gqlstream/internal/tables"
	"gqlstream/quant"
)

// partColumn is a column of a part, which is a field of the JSON record.
type partColumn struct {
	field     arrow.Field
	index     int  // of the field in quant.Estimate
	omitEmpty bool // null where the JSON record leaves the field out
}

// identity are the columns with a value in the row of a suppressed community, in addition to
// always.
var identity = map[string]bool{"pipeline": true, "time": true, "config": true}

// always are the columns that are never null, in addition to the booleans, which the JSON record
// omits when they are false.
var always = map[string]bool{"community": true, "position": true, "flags": true}

// partColumns derives the columns from the record: the same names, the same order.
func partColumns() (columns []partColumn) {
	t := reflect.TypeFor[quant.Estimate]()
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		isBool := t.Field(i).Type.Kind() == reflect.Bool
		columns = append(columns, partColumn{
			field: arrow.Field{
				Name:     name,
				Type:     columnType(name, t.Field(i).Type),
				Nullable: !always[name] && !isBool,
			},
			index: i, omitEmpty: options == "omitempty" && !isBool,
		})
	}
	return columns
}

func columnType(name string, t reflect.Type) arrow.DataType {
	switch t.Kind() {
	case reflect.String:
		if name == "time" {
			return arrow.FixedWidthTypes.Timestamp_us // in UTC, as every reader knows it
		}
		return arrow.BinaryTypes.String
	case reflect.Uint64:
		return arrow.PrimitiveTypes.Uint64
	case reflect.Float64:
		return arrow.PrimitiveTypes.Float64
	case reflect.Bool:
		return arrow.FixedWidthTypes.Boolean
	case reflect.Slice:
		return arrow.ListOfNonNullable(columnType("", t.Elem()))
	}
	panic(fmt.Sprintf("sinks: field %s of an estimate has type %v, for which there is no column",
		name, t))
}

// partTable gathers the rows of a part.
type partTable struct {
	columns []partColumn
	builder *array.RecordBuilder
	rows    int
}

func newPartTable() *partTable {
	t := &partTable{columns: partColumns()}
	fields := make([]arrow.Field, len(t.columns))
	for i, c := range t.columns {
		fields[i] = c.field
	}
	t.builder = array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	return t
}

func (t *partTable) append(e *quant.Estimate) {
	record := reflect.ValueOf(e).Elem()
	for i, c := range t.columns {
		value := record.Field(c.index)
		absent := c.omitEmpty && value.IsZero() ||
			e.Suppressed && c.field.Nullable && !identity[c.field.Name]
		if absent {
			t.builder.Field(i).AppendNull()
		} else {
			appendCell(t.builder.Field(i), value)
		}
	}
	t.rows++
}

func appendCell(b array.Builder, value reflect.Value) {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(value.String())
	case *array.Uint64Builder:
		b.Append(value.Uint())
	case *array.Float64Builder:
		b.Append(value.Float())
	case *array.BooleanBuilder:
		b.Append(value.Bool())
	case *array.TimestampBuilder:
		at, err := time.Parse(time.RFC3339Nano, value.String())
		if err != nil {
			b.AppendNull()
			return
		}
		b.Append(arrow.Timestamp(at.UnixMicro()))
	case *array.ListBuilder:
		b.Append(true)
		for i := range value.Len() {
			appendCell(b.ValueBuilder(), value.Index(i))
		}
	}
}

// write moves the rows into a file.
func (t *partTable) write(w io.Writer) error {
	t.rows = 0
	_, err := tables.Encode(w, partFormat, slices.Values([]arrow.Record{t.builder.NewRecord()}))
	return err
}
