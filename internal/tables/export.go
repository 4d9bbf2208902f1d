package tables

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/csv"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// The forms of a table in a file, by extension.
const (
	Parquet = "parquet"
	CSV     = "csv"
)

// FormatOf returns the form that a file's extension says.
func FormatOf(path string) (string, error) {
	switch format := strings.TrimPrefix(filepath.Ext(path), "."); format {
	case Parquet, CSV:
		return format, nil
	}
	return "", fmt.Errorf("%s: want a file that ends in .%s or .%s", path, Parquet, CSV)
}

// Export writes records of one schema, at least one, as a file that appears whole
// or not at all, and returns how many rows it has. It releases every record.
func Export(path string, records iter.Seq[arrow.Record]) (rows int64, err error) {
	format, err := FormatOf(path)
	if err != nil {
		return 0, err
	}
	temporary := path + ".tmp"
	file, err := os.Create(temporary)
	if err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	rows, err = Encode(file, format, records)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return 0, fmt.Errorf("export %s: %w", path, errors.Join(err, os.Remove(temporary)))
	}
	return rows, nil
}

// unclosed hides the file's Close from the Parquet writer, which would call it.
type unclosed struct{ io.Writer }

// Encode writes records of one schema, at least one, and returns how many rows they have. It
// releases every record.
func Encode(w io.Writer, format string, records iter.Seq[arrow.Record]) (rows int64, err error) {
	buffered := bufio.NewWriterSize(w, 1<<20)
	var write func(arrow.Record) error
	var finish func() error
	for record := range records {
		record = widened(record)
		switch {
		case write != nil:
		case format == CSV:
			out := csv.NewWriter(buffered, record.Schema(), csv.WithHeader(true),
				csv.WithNullWriter(""))
			write, finish = out.Write, out.Flush
		default:
			write, finish, err = parquetWriter(unclosed{buffered}, record.Schema())
		}
		if err == nil {
			err = write(record)
			rows += record.NumRows()
		}
		record.Release()
		if err != nil {
			return rows, err
		}
	}
	if finish == nil {
		return 0, errors.New("a table without a schema")
	}
	return rows, errors.Join(finish(), buffered.Flush())
}

// parquetWriter returns how to write records of a schema as Parquet, and how to end.
func parquetWriter(
	w io.Writer, schema *arrow.Schema,
) (func(arrow.Record) error, func() error, error) {
	converted, err := schemaOf(schema)
	if err != nil {
		return nil, nil, err
	}
	properties := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))
	out, err := pqarrow.NewFileWriter(converted, w, properties, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, nil, err
	}
	return func(record arrow.Record) error {
		batch := recordOf(record, converted)
		defer batch.Release()
		return out.Write(batch)
	}, out.Close, nil
}

// widened returns a record with the elements of fixed-size lists as columns, and
// releases the one it was made from.
func widened(record arrow.Record) arrow.Record {
	defer record.Release()
	var fields []arrow.Field
	var columns []arrow.Array
	for i, field := range record.Schema().Fields() {
		list, ok := record.Column(i).(*array.FixedSizeList)
		if !ok {
			record.Column(i).Retain()
			fields, columns = append(fields, field), append(columns, record.Column(i))
			continue
		}
		for k := range list.DataType().(*arrow.FixedSizeListType).Len() {
			fields = append(
				fields,
				arrow.Field{
					Name:     fmt.Sprintf("p%d", k),
					Type:     arrow.PrimitiveTypes.Float64,
					Nullable: true,
				},
			)
			columns = append(columns, elementOf(list, int(k)))
		}
	}
	wide := array.NewRecord(arrow.NewSchema(fields, nil), columns, record.NumRows())
	for _, c := range columns {
		c.Release()
	}
	return wide
}

// elementOf returns the k-th elements of a list of numbers.
func elementOf(list *array.FixedSizeList, k int) arrow.Array {
	builder := array.NewFloat64Builder(memory.DefaultAllocator)
	defer builder.Release()
	values := list.ListValues().(*array.Float64)
	width := int(list.DataType().(*arrow.FixedSizeListType).Len())
	for row := range list.Len() {
		if list.IsNull(row) {
			builder.AppendNull()
		} else {
			builder.Append(values.Value(row*width + k))
		}
	}
	return builder.NewArray()
}
