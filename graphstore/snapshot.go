package graphstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// Records returns a table as Arrow records over one copy of its rows, which stays
// as it is whatever becomes of the store. The caller releases each.
func (w View) Records(t Table) []arrow.Record {
	var records []arrow.Record
	_ = w.s.table(t, nil).save(func(rows []vector) error { // visit cannot fail
		records = append(records, recordOf(rows))
		return nil
	})
	return records
}

// errEnough ends a table that nobody wants the rest of.
var errEnough = errors.New("enough")

// RowRecords returns structs as Arrow records, at least one, with the columns that WriteRows
// gives them. Whoever takes a record releases it.
func RowRecords[T any](rows iter.Seq[T]) iter.Seq[arrow.Record] {
	return func(yield func(arrow.Record) bool) {
		_ = inChunks(columnsOf[T](0), rows, func(chunk []vector) error { // it ends early at most
			if !yield(recordOf(chunk)) {
				return errEnough
			}
			return nil
		})
	}
}

// Section is one table of a snapshot.
type Section struct {
	Table Table
	store *Store
}

// Lasts reports whether the section reads copies, so that it may be written at any time.
func (s Section) Lasts() bool { return s.store.copied }

// Sections returns the tables as they stand, to compare them with those of a
// store that went through the same history. They must be written before the next
// Apply.
func (w View) Sections() []Section {
	sections := make([]Section, 0, len(Tables()))
	for _, t := range Tables() {
		sections = append(sections, Section{Table: t, store: w.s})
	}
	return sections
}

// WriteTo writes the table as an uncompressed Arrow IPC file and returns how many
// bytes that took. The bytes depend on the content of the store alone.
func (s Section) WriteTo(w io.Writer) (int64, error) {
	n, err := writeTable(w, s.store.table(s.Table, nil).save)
	if err != nil {
		return n, fmt.Errorf("graphstore: write table %s: %w", s.Table, err)
	}
	return n, nil
}

// writeTable writes the chunks of a table, at least one, as an Arrow IPC file.
func writeTable(w io.Writer, chunks func(visit func([]vector) error) error) (int64, error) {
	counter := &countingWriter{w: w}
	var file *ipc.FileWriter
	err := chunks(func(rows []vector) error {
		record := recordOf(rows)
		defer record.Release()
		if file == nil {
			var err error
			if file, err = ipc.NewFileWriter(counter, ipc.WithSchema(record.Schema())); err != nil {
				return err
			}
		}
		return file.Write(record)
	})
	if err == nil {
		err = file.Close()
	}
	return counter.n, err
}

// countingWriter is a writer that knows its position, which is all that the IPC
// writer wants of a seeker.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write passes the bytes on and counts them.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Seek tells the position and moves nowhere.
func (c *countingWriter) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, fmt.Errorf("seek to %d from %d in a stream", offset, whence)
	}
	return c.n, nil
}

// readTable visits the rows of a table written by WriteTo, chunk by chunk. The
// vectors alias data or memory of the reader and are valid during the visit. data
// must be known to be undamaged: the IPC reader does not survive hostile bytes.
func readTable(t Table, data []byte, visit func([]vector) error) error {
	file, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("read table %s: %w", t, err)
	}
	defer file.Close()
	for i := range file.NumRecords() {
		if err := readRecord(file, i, visit); err != nil {
			return fmt.Errorf("read table %s: %w", t, err)
		}
	}
	return nil
}

// hasColumn says whether a table written by WriteTo has a column.
func hasColumn(data []byte, name string) (bool, error) {
	file, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return false, err
	}
	return file.Schema().HasField(name), file.Close()
}

// readRecord visits the rows of one record batch.
func readRecord(file *ipc.FileReader, i int, visit func([]vector) error) error {
	record, err := file.RecordAt(i)
	if err != nil {
		return err
	}
	defer record.Release()
	rows := make([]vector, record.NumCols())
	for j := range rows {
		if rows[j], err = vectorFrom(record.ColumnName(j), record.Column(j).Data()); err != nil {
			return err
		}
	}
	return visit(rows)
}

var timestamps = &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}

// arrowTypes are the types of vectors by kind; that of lists of fixed length depends on it.
var arrowTypes = [f64FixedVector]arrow.DataType{
	u8Vector: arrow.PrimitiveTypes.Uint8, i32Vector: arrow.PrimitiveTypes.Int32,
	u32Vector: arrow.PrimitiveTypes.Uint32, u64Vector: arrow.PrimitiveTypes.Uint64,
	f64Vector: arrow.PrimitiveTypes.Float64, timeVector: timestamps,
	textVector: arrow.BinaryTypes.String, bytesVector: arrow.BinaryTypes.Binary,
	u32ListVector: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint32),
	f64ListVector: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64),
}

// arrowType returns the type of a vector.
func (v *vector) arrowType() arrow.DataType {
	if v.kind == f64FixedVector {
		return arrow.FixedSizeListOfNonNullable(int32(v.width), arrow.PrimitiveTypes.Float64)
	}
	return arrowTypes[v.kind]
}

// recordOf returns vectors as a record that aliases them.
func recordOf(rows []vector) arrow.Record {
	fields, columns := make([]arrow.Field, len(rows)), make([]arrow.Array, len(rows))
	for i := range rows {
		v := &rows[i]
		fields[i] = arrow.Field{Name: v.name, Type: v.arrowType(), Nullable: true}
		data := v.arrowData(fields[i].Type)
		columns[i] = array.MakeFromData(data)
		data.Release()
	}
	record := array.NewRecord(arrow.NewSchema(fields, nil), columns, int64(rows[0].rows))
	for _, column := range columns {
		column.Release()
	}
	return record
}

// arrowData returns a vector as Arrow has it, aliasing its memory.
func (v *vector) arrowData(typ arrow.DataType) arrow.ArrayData {
	var valid *memory.Buffer
	if v.valid != nil {
		valid = memory.NewBufferBytes(v.valid)
	}
	values := memory.NewBufferBytes(v.data)
	var child []arrow.ArrayData
	buffers := []*memory.Buffer{valid}
	if v.kind.hasOffsets() {
		buffers = append(buffers, memory.NewBufferBytes(rawBytes(v.offsets)))
	}
	if nested, ok := typ.(arrow.NestedType); ok {
		elements := array.NewData(nested.Fields()[0].Type, len(v.data)/v.kind.sizeOf(),
			[]*memory.Buffer{nil, values}, nil, 0, 0)
		defer elements.Release()
		child = []arrow.ArrayData{elements}
	} else {
		buffers = append(buffers, values)
	}
	return array.NewData(typ, v.rows, buffers, child, v.nulls, 0)
}

// vectorFrom returns a column as a vector that aliases it, and an error if it is
// of a type that no vector has, or does not fit together.
func vectorFrom(name string, data arrow.ArrayData) (vector, error) {
	v := vector{name: name, rows: data.Len(), nulls: data.NullN()}
	buffers := data.Buffers()
	values := data
	if fixed, ok := data.DataType().(*arrow.FixedSizeListType); ok {
		v.width = int(fixed.Len())
	}
	for v.kind < f64FixedVector && !arrow.TypeEqual(arrowTypes[v.kind], data.DataType()) {
		v.kind++
	}
	if !arrow.TypeEqual(v.arrowType(), data.DataType()) {
		return v, fmt.Errorf("column %q is of type %v", name, data.DataType())
	}
	if data.Offset() != 0 {
		return v, fmt.Errorf("column %q starts at row %d", name, data.Offset())
	}
	if v.kind.hasOffsets() {
		v.offsets = elements[int32](bytesOf(buffers[1]))
		v.offsets = v.offsets[:min(len(v.offsets), v.rows+1)]
	}
	if children := data.Children(); len(children) > 0 {
		values = children[0]
		buffers = values.Buffers()
	}
	v.data = bytesOf(buffers[len(buffers)-1])
	if v.nulls > 0 {
		v.valid = bytesOf(data.Buffers()[0])
	}
	return v, v.check()
}

// bytesOf returns the memory of a buffer that may be missing.
func bytesOf(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}
