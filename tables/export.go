package tables

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
)

// Formats are the forms of a table in a file, by extension.
var Formats = []string{"parquet", "csv", "arrow"}

// recordWriter writes the records of one table.
type recordWriter interface {
	Write(arrow.Record) error
	Close() error
}

// Export writes records of one schema, at least one, as a file that appears whole
// or not at all, and returns how many rows it has. It releases every record. In
// Parquet and CSV a list of fixed length, such as probabilities, becomes the columns
// p0, p1, ...
func Export(path, format string, records iter.Seq[arrow.Record]) (rows int64, err error) {
	if !slices.Contains(Formats, format) {
		return 0, fmt.Errorf("tables: export: there is no format %q; there are %v", format, Formats)
	}
	temporary := path + ".tmp"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, fmt.Errorf("tables: export: %w", err)
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
		return 0, fmt.Errorf("tables: export %s: %w", path, errors.Join(err, os.Remove(temporary)))
	}
	return rows, syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// unclosed hides the file's Close from the Parquet writer, which would call it.
type unclosed struct{ io.Writer }

// Encode writes records of one schema, at least one, and returns how many rows they have. It
// releases every record.
func Encode(w io.Writer, format string, records iter.Seq[arrow.Record]) (rows int64, err error) {
	buffered := bufio.NewWriterSize(w, 1<<20)
	var out recordWriter
	for record := range records {
		if format != "arrow" {
			record = widened(record)
		}
		if out == nil {
			out, err = newRecordWriter(buffered, format, record.Schema())
		}
		if err == nil {
			err = out.Write(record)
			rows += record.NumRows()
		}
		record.Release()
		if err != nil {
			return rows, err
		}
	}
	if out == nil {
		return 0, errors.New("a table without a schema")
	}
	if err := out.Close(); err != nil {
		return rows, err
	}
	return rows, buffered.Flush()
}

func newRecordWriter(w io.Writer, format string, schema *arrow.Schema) (recordWriter, error) {
	switch format {
	case "arrow":
		return ipc.NewFileWriter(&placedWriter{w: w}, ipc.WithSchema(schema))
	case "csv":
		return newTextTable(w, schema)
	}
	properties := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))
	return pqarrow.NewFileWriter(schema, unclosed{w}, properties, pqarrow.DefaultWriterProps())
}

// placedWriter is a writer that knows its position, which is all that the IPC
// writer wants of a seeker.
type placedWriter struct {
	w io.Writer
	n int64
}

func (p *placedWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.n += int64(n)
	return n, err
}

func (p *placedWriter) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, fmt.Errorf("seek to %d from %d in a stream", offset, whence)
	}
	return p.n, nil
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
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("p%d", k), Type: arrow.PrimitiveTypes.Float64, Nullable: true})
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

// FormatOf returns the form that a file's extension says.
func FormatOf(path string) string { return strings.TrimPrefix(filepath.Ext(path), ".") }
