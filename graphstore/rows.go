package graphstore

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"gqlstream/ingest/event"
)

// Most rows of a record batch, and bytes of texts and lists after which it is closed: Arrow offsets
// have 32 bits.
const (
	chunkRowsMax  = 1 << 16
	chunkBytesMax = 256 << 20
)

// nullable is a field of a row that need not have a value.
type nullable[T any] struct {
	Value T
	Valid bool
}

// rowColumn is one field of a struct as a column of a table.
type rowColumn struct {
	arrow.Field
	at    uintptr // of the value in the struct
	valid uintptr // of the bool that says whether there is a value; 0 if there always is
	added bool    // the tables of earlier releases lack it
}

// columnsOf returns the columns for the fields of a struct, those of the structs in it included. A
// column has the field's name in lower case, or the field's tag column; with the tag fixed, its
// lists have that width. A field with the tag added, which names the format that added it, is zero
// in the tables of earlier releases. It panics on a field of a type without a column type.
func columnsOf[T any](width int) []rowColumn {
	return appendColumns(nil, reflect.TypeFor[T](), 0, width)
}

// appendColumns appends the columns for a struct that lies so far from the beginning of the row.
func appendColumns(columns []rowColumn, row reflect.Type, from uintptr, width int) []rowColumn {
	for i := range row.NumField() {
		f := row.Field(i)
		if f.Tag.Get("column") == "-" {
			continue
		}
		typ, at, valid := f.Type, from+f.Offset, uintptr(0)
		if typ.Kind() == reflect.Struct {
			if _, optional := typ.FieldByName("Valid"); !optional {
				columns = appendColumns(columns, typ, at, width)
				continue
			}
			valid = at + typ.Field(1).Offset
			typ = typ.Field(0).Type
		}
		c := rowColumn{at: at, valid: valid}
		c.Name, c.Nullable = cmp.Or(f.Tag.Get("column"), strings.ToLower(f.Name)), true
		_, c.added = f.Tag.Lookup("added")
		if c.Type = typeOf(typ); c.Type == nil || !f.IsExported() {
			panic(fmt.Sprintf("graphstore: field %s of %v is no column", f.Name, row))
		}
		if f.Tag.Get("list") == "fixed" {
			c.Type = arrow.FixedSizeListOfNonNullable(int32(width), arrow.PrimitiveTypes.Float64)
		}
		columns = append(columns, c)
	}
	return columns
}

// typeOf returns the type of a column that holds a Go type, nil where there is none.
func typeOf(t reflect.Type) arrow.DataType {
	if t == reflect.TypeFor[event.Time]() {
		return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8:
		return arrow.PrimitiveTypes.Uint8
	case reflect.Int32:
		return arrow.PrimitiveTypes.Int32
	case reflect.Int64:
		return arrow.PrimitiveTypes.Int64
	case reflect.Uint32:
		return arrow.PrimitiveTypes.Uint32
	case reflect.Uint64:
		return arrow.PrimitiveTypes.Uint64
	case reflect.Float64:
		return arrow.PrimitiveTypes.Float64
	case reflect.String:
		return arrow.BinaryTypes.String
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Uint8:
			return arrow.BinaryTypes.Binary
		case reflect.Uint32, reflect.Float64:
			return arrow.ListOfNonNullable(typeOf(t.Elem()))
		}
	}
	return nil
}

// records are the records of a table, at least one: an empty table has an empty record with its
// columns. They are copies, and the consumer releases them.
type records = iter.Seq[arrow.Record]

// schemaOf returns the schema of a table with these columns.
func schemaOf(columns []rowColumn) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = c.Field
	}
	return arrow.NewSchema(fields, nil)
}

// recordsOf returns rows as records.
func recordsOf[T any](columns []rowColumn, rows iter.Seq[T]) records {
	return func(yield func(arrow.Record) bool) {
		builder := array.NewRecordBuilder(memory.DefaultAllocator, schemaOf(columns))
		defer builder.Release()
		row, n, size := new(T), 0, 0
		for *row = range rows {
			if n == chunkRowsMax || size >= chunkBytesMax {
				if !yield(recordOf(builder)) {
					return
				}
				builder.Reserve(n)
				n, size = 0, 0
			}
			for i := range columns {
				c, valid := &columns[i], []bool(nil)
				if c.valid != 0 {
					valid = unsafe.Slice((*bool)(unsafe.Add(unsafe.Pointer(row), c.valid)), 1)
				}
				size += appendCell(builder.Field(i), unsafe.Add(unsafe.Pointer(row), c.at), valid)
			}
			n++
		}
		yield(recordOf(builder))
	}
}

// recordOf returns the rows in a builder.
func recordOf(builder *array.RecordBuilder) arrow.Record {
	record := builder.NewRecord()
	for _, column := range record.Columns() {
		trimBitmap(column)
	}
	return record
}

// trimBitmap cuts a null bitmap to the bytes that its rows need, so that the bytes of a file depend
// on its rows alone.
func trimBitmap(column arrow.Array) {
	if bits := column.Data().Buffers()[0]; bits != nil {
		bits.ResizeNoShrink((column.Len() + 7) / 8)
	}
}

// one returns the value at an address as a slice.
func one[T any](at unsafe.Pointer) []T { return unsafe.Slice((*T)(at), 1) }

// appendCell appends the value at an address, which is of the column's type, and returns its size
// if the type has values of various sizes. Without valid it is not null, else valid[0] decides; the
// bytes of a null are appended all the same.
func appendCell(column array.Builder, at unsafe.Pointer, valid []bool) (size int) {
	switch column := column.(type) {
	case *array.Uint8Builder:
		column.AppendValues(one[uint8](at), valid)
	case *array.Int32Builder:
		column.AppendValues(one[int32](at), valid)
	case *array.Int64Builder:
		column.AppendValues(one[int64](at), valid)
	case *array.Uint32Builder:
		column.AppendValues(one[uint32](at), valid)
	case *array.Uint64Builder:
		column.AppendValues(one[uint64](at), valid)
	case *array.Float64Builder:
		column.AppendValues(one[float64](at), valid)
	case *array.TimestampBuilder:
		column.AppendValues(one[arrow.Timestamp](at), valid)
	case *array.StringBuilder:
		column.AppendStringValues(one[string](at), valid)
		return len(*(*string)(at))
	case *array.BinaryBuilder:
		column.AppendValues(one[[]byte](at), valid)
		return len(*(*[]byte)(at))
	case array.ListLikeBuilder:
		column.Append(valid == nil || valid[0])
		if values, ok := column.ValueBuilder().(*array.Uint32Builder); ok {
			values.AppendValues(*(*[]uint32)(at), nil)
			return 4 * len(*(*[]uint32)(at))
		}
		column.ValueBuilder().(*array.Float64Builder).AppendValues(*(*[]float64)(at), nil)
		return 8 * len(*(*[]float64)(at))
	}
	return 0
}

// rowsAtOnce is how many rows are read, column by column, before they are visited.
const rowsAtOnce = 256

// eachRow visits the rows of a table, which must have these columns, except those that it lacks
// because an earlier release wrote it. Texts and lists are copies, or else valid only during the
// visit.
func eachRow[T any](
	t Table, columns []rowColumn, data []byte, copied bool, visit func(*T) error,
) error {
	some := make([]T, rowsAtOnce)
	return readTable(t, data, func(chunk arrow.Record) error {
		cells, fits := cellsOf(columns, chunk)
		if !fits {
			return fmt.Errorf("table %s lacks columns of this version and configuration", t)
		}
		for from := 0; from < int(chunk.NumRows()); from += rowsAtOnce {
			rows := some[:min(rowsAtOnce, int(chunk.NumRows())-from)]
			readChunk(rows, columns, cells, from, copied)
			for i := range rows {
				if err := visit(&rows[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// cellsOf returns the values of each column in a chunk, nil for a column that an earlier release
// did not write, and whether the chunk has these columns and no others.
func cellsOf(columns []rowColumn, chunk arrow.Record) (cells []arrow.Array, fits bool) {
	cells = make([]arrow.Array, len(columns))
	found := 0
	for i, c := range columns {
		named := func(f arrow.Field) bool { return f.Name == c.Name }
		at := slices.IndexFunc(chunk.Schema().Fields(), named)
		if at < 0 {
			if !c.added {
				return nil, false
			}
			continue
		}
		cells[i] = chunk.Column(at)
		found++
		if !arrow.TypeEqual(cells[i].DataType(), c.Type) || cells[i].NullN() > 0 && c.valid == 0 {
			return nil, false
		}
	}
	return cells, found == int(chunk.NumCols())
}

// readChunk fills rows from the cells of a chunk, starting at row from.
func readChunk[T any](rows []T, columns []rowColumn, cells []arrow.Array, from int, copied bool) {
	clear(rows)
	for j, column := range cells {
		c := &columns[j]
		if column == nil {
			continue
		}
		for i := range rows {
			at := unsafe.Pointer(&rows[i])
			if c.valid != 0 {
				if column.IsNull(from + i) {
					continue
				}
				*(*bool)(unsafe.Add(at, c.valid)) = true
			}
			readCell(column, from+i, unsafe.Add(at, c.at), copied)
		}
	}
}

// readCell writes a value to an address, which is of the column's type. Texts and lists are copied,
// or else alias the column.
func readCell(column arrow.Array, i int, at unsafe.Pointer, copied bool) {
	switch column := column.(type) {
	case *array.Uint8:
		*(*uint8)(at) = column.Value(i)
	case *array.Int32:
		*(*int32)(at) = column.Value(i)
	case *array.Int64:
		*(*int64)(at) = column.Value(i)
	case *array.Uint32:
		*(*uint32)(at) = column.Value(i)
	case *array.Uint64:
		*(*uint64)(at) = column.Value(i)
	case *array.Float64:
		*(*float64)(at) = column.Value(i)
	case *array.Timestamp:
		*(*arrow.Timestamp)(at) = column.Value(i)
	case *array.String:
		if *(*string)(at) = column.Value(i); copied {
			*(*string)(at) = strings.Clone(column.Value(i))
		}
	case *array.Binary:
		readList(column.Value(i), at, copied)
	case array.ListLike:
		from, to := column.ValueOffsets(i)
		if values, ok := column.ListValues().(*array.Uint32); ok {
			readList(values.Uint32Values()[from:to], at, copied)
		} else {
			readList(column.ListValues().(*array.Float64).Float64Values()[from:to], at, copied)
		}
	}
}

// readList writes a list to an address; an empty one becomes nil.
func readList[T any](list []T, at unsafe.Pointer, copied bool) {
	switch {
	case len(list) == 0:
		list = nil
	case copied:
		list = slices.Clone(list)
	}
	*(*[]T)(at) = list
}

// RowRecords returns structs as Arrow records, at least one, with the columns of EncodeRows. The
// consumer releases each.
func RowRecords[T any](rows iter.Seq[T]) iter.Seq[arrow.Record] {
	return recordsOf(columnsOf[T](0), rows)
}

// EncodeRows returns structs as an uncompressed Arrow IPC file with a column for
// each field, those of embedded structs included, named as the field in lower
// case. A field is a bool, uint32, uint64, int64, float64, event.Time, string, []byte,
// []uint32 or []float64, or of a type made of one of these; it panics on another.
// Empty slices come back as nil.
func EncodeRows[T any](rows []T) ([]byte, error) {
	data, err := encodeTable(RowRecords(slices.Values(rows)), 0)
	if err != nil {
		return nil, fmt.Errorf("encode rows: %w", err)
	}
	return data, nil
}

// ReadRows reads the result of EncodeRows for the same struct. The caller has verified the checksum
// of data: damaged bytes can end the process.
func ReadRows[T any](data []byte) (rows []T, err error) {
	err = eachRow("rows", columnsOf[T](0), data, true, func(row *T) error {
		rows = append(rows, *row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}
