package tables

import (
	"fmt"

	newer "github.com/apache/arrow-go/v18/arrow"
	newarray "github.com/apache/arrow-go/v18/arrow/array"
	newmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow/go/v17/arrow"
)

// scalars are the types of both releases of Arrow that need nothing but their name.
var scalars = map[arrow.Type]newer.DataType{
	arrow.BOOL: newer.FixedWidthTypes.Boolean, arrow.STRING: newer.BinaryTypes.String,
	arrow.UINT8: newer.PrimitiveTypes.Uint8, arrow.UINT16: newer.PrimitiveTypes.Uint16,
	arrow.UINT32: newer.PrimitiveTypes.Uint32, arrow.UINT64: newer.PrimitiveTypes.Uint64,
	arrow.INT8: newer.PrimitiveTypes.Int8, arrow.INT16: newer.PrimitiveTypes.Int16,
	arrow.INT32: newer.PrimitiveTypes.Int32, arrow.INT64: newer.PrimitiveTypes.Int64,
	arrow.FLOAT32: newer.PrimitiveTypes.Float32, arrow.FLOAT64: newer.PrimitiveTypes.Float64,
	arrow.BINARY: newer.BinaryTypes.Binary, arrow.LARGE_STRING: newer.BinaryTypes.LargeString,
}

// typeOf returns the type of the release of Arrow that writes Parquet.
func typeOf(t arrow.DataType) (newer.DataType, error) {
	switch t := t.(type) {
	case *arrow.TimestampType:
		return &newer.TimestampType{Unit: newer.TimeUnit(t.Unit), TimeZone: t.TimeZone}, nil
	case *arrow.ListType:
		of, err := typeOf(t.Elem())
		if err != nil {
			return nil, err
		}
		field := t.ElemField()
		return newer.ListOfField(newer.Field{Name: field.Name, Type: of, Nullable: field.Nullable}),
			nil
	}
	if of, known := scalars[t.ID()]; known {
		return of, nil
	}
	return nil, fmt.Errorf("columns of type %v are not written", t)
}

// schemaOf returns a schema of the release of Arrow that writes Parquet.
func schemaOf(schema *arrow.Schema) (*newer.Schema, error) {
	fields := make([]newer.Field, schema.NumFields())
	for i, field := range schema.Fields() {
		of, err := typeOf(field.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		fields[i] = newer.Field{Name: field.Name, Type: of, Nullable: field.Nullable}
	}
	return newer.NewSchema(fields, nil), nil
}

// recordOf returns a record of the release of Arrow that writes Parquet. It shares memory with the
// record that it is made from, which must outlive it.
func recordOf(record arrow.Record, schema *newer.Schema) newer.RecordBatch {
	columns := make([]newer.Array, record.NumCols())
	for i, column := range record.Columns() {
		data := dataOf(column.Data(), schema.Field(i).Type)
		columns[i] = newarray.MakeFromData(data)
		data.Release()
	}
	out := newarray.NewRecordBatch(schema, columns, record.NumRows())
	for _, column := range columns {
		column.Release()
	}
	return out
}

func dataOf(d arrow.ArrayData, of newer.DataType) *newarray.Data {
	buffers := make([]*newmemory.Buffer, len(d.Buffers()))
	for i, b := range d.Buffers() {
		if b != nil {
			buffers[i] = newmemory.NewBufferBytes(b.Bytes())
		}
	}
	var children []newer.ArrayData
	for _, child := range d.Children() {
		children = append(children, dataOf(child, of.(newer.ListLikeType).Elem()))
	}
	return newarray.NewData(of, d.Len(), buffers, children, d.NullN(), d.Offset())
}
