package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// recordTable reads the rows of Arrow records, from Arrow or Parquet files. These
// are the user's own files: a damaged one is an error, found by the readers or
// by a panic of theirs, which does not get out of here.
type recordTable struct {
	load    func() (arrow.Record, error) // the next record, not retained; io.EOF
	slots   []int                        // by column of the records
	columns *columns

	record arrow.Record
	cells  []columnReader
	rows   int // of record
	at     int // the next row of record
	number int64
	last   *fileRow
}

// columnReader reads one column of a record.
type columnReader struct {
	slot int
	read func(i int, c *cell, row *fileRow)
}

// next reads one row.
func (t *recordTable) next(row *fileRow) (err error) {
	defer recoverDamage(&err)
	for t.at == t.rows {
		if err := t.nextRecord(); err != nil {
			return err
		}
	}
	t.number++
	t.last = row
	row.reset(len(t.columns.names))
	for _, c := range t.cells {
		c.read(t.at, &row.cells[c.slot], row)
	}
	t.at++
	return nil
}

func (t *recordTable) nextRecord() error {
	record, err := t.load()
	if err != nil {
		return err
	}
	t.record, t.rows, t.at = record, int(record.NumRows()), 0
	t.cells = t.cells[:0]
	for i, slot := range t.slots {
		if slot < 0 {
			continue
		}
		if record.Column(i).Len() != t.rows {
			return fmt.Errorf("column %s has %d rows in a record of %d", t.columns.slotName(slot),
				record.Column(i).Len(), t.rows)
		}
		read := cellReader(record.Column(i))
		if read == nil {
			return fmt.Errorf("column %s: values of type %v are not read", t.columns.slotName(slot),
				record.Column(i).DataType())
		}
		t.cells = append(t.cells, columnReader{slot, read})
	}
	return nil
}

func (t *recordTable) place() int64 { return t.number }

// text renders the last row as JSON.
func (t *recordTable) text() []byte {
	out := []byte{'{'}
	for slot := range t.last.cells {
		c := &t.last.cells[slot]
		if c.missing() {
			continue
		}
		value, err := json.Marshal(c.String())
		if c.kind == textCell {
			value, err = json.Marshal(c.text)
		}
		if c.kind == listCell {
			value, err = json.Marshal(c.list)
		}
		key, _ := json.Marshal(t.columns.slotName(slot)) // a string
		if err != nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}')
}

// boundedAllocator refuses, by a panic, buffers larger than any real one: damaged
// lengths would otherwise end the process, which no recover can prevent.
type boundedAllocator struct{ memory.Allocator }

// fileBufferBytesMax bounds one buffer of a column.
const fileBufferBytesMax = 1 << 30

func (a boundedAllocator) Allocate(size int) []byte {
	checkBuffer(size)
	return a.Allocator.Allocate(size)
}

func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	checkBuffer(size)
	return a.Allocator.Reallocate(size, b)
}

func checkBuffer(size int) {
	if size < 0 || size > fileBufferBytesMax {
		panic(fmt.Sprintf("a buffer of %d bytes, at most %d are read", size, fileBufferBytesMax))
	}
}

// fileAllocator is what files are read with.
var fileAllocator = boundedAllocator{memory.DefaultAllocator}

// recoverDamage turns a panic about damaged bytes into an error.
func recoverDamage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged: %v", p)
	}
}

// newArrowTable reads an Arrow IPC file, or the stream format.
func newArrowTable(f *openedFile, c *columns) (t *recordTable, stop func(), err error) {
	defer recoverDamage(&err)
	stop = func() {}
	random, err := f.random()
	if err != nil {
		return nil, stop, err
	}
	magic := make([]byte, 6)
	if n, err := random.ReadAt(magic, 0); n == 0 && err != nil {
		return nil, stop, errors.New("empty, want an Arrow file")
	}
	t = &recordTable{columns: c}
	var schema *arrow.Schema
	if string(magic) == "ARROW1" {
		schema, t.load, err = openArrowFile(random)
	} else {
		schema, t.load, stop, err = openArrowStream(random)
	}
	if err != nil {
		return nil, stop, fmt.Errorf("not an Arrow file or stream: %w", err)
	}
	t.slots, err = c.setHeader(fieldNames(schema))
	return t, stop, err
}

func openArrowFile(random randomFile) (*arrow.Schema, func() (arrow.Record, error), error) {
	if err := checkArrowFile(random); err != nil {
		return nil, nil, err
	}
	reader, err := ipc.NewFileReader(random, ipc.WithAllocator(fileAllocator))
	if err != nil {
		return nil, nil, err
	}
	next := 0
	return reader.Schema(), func() (arrow.Record, error) {
		if next == reader.NumRecords() {
			return nil, io.EOF
		}
		next++
		return reader.Record(next - 1) // the reader owns it until the next one
	}, nil
}

func openArrowStream(r randomFile) (*arrow.Schema, func() (arrow.Record, error), func(), error) {
	if err := checkArrowStream(r); err != nil {
		return nil, nil, func() {}, err
	}
	reader, err := ipc.NewReader(r, ipc.WithAllocator(fileAllocator))
	if err != nil {
		return nil, nil, func() {}, err
	}
	return reader.Schema(), func() (arrow.Record, error) {
		if reader.Next() {
			return reader.Record(), nil
		}
		if err := reader.Err(); err != nil && err != io.EOF {
			return nil, err
		}
		return nil, io.EOF
	}, reader.Release, nil
}

func fieldNames(schema *arrow.Schema) []string {
	names := make([]string, schema.NumFields())
	for i, field := range schema.Fields() {
		names[i] = field.Name
	}
	return names
}

// cellReader returns how to read the values of an array, or nil when there is no
// way.
func cellReader(a arrow.Array) func(i int, c *cell, row *fileRow) {
	read := valueReader(a)
	if read == nil || a.NullN() == 0 && a.DataType().ID() != arrow.NULL {
		return read
	}
	return func(i int, c *cell, row *fileRow) {
		if a.IsNull(i) {
			c.kind = nullCell
			return
		}
		read(i, c, row)
	}
}

func valueReader(a arrow.Array) func(i int, c *cell, row *fileRow) {
	switch a := a.(type) {
	case *array.Null:
		return func(_ int, c *cell, _ *fileRow) { c.kind = nullCell }
	case *array.Boolean:
		return func(i int, c *cell, _ *fileRow) {
			c.kind = boolCell
			if a.Value(i) {
				c.integer = 1
			}
		}
	case *array.String:
		return textReader(a.Value)
	case *array.LargeString:
		return textReader(a.Value)
	case *array.StringView:
		return textReader(a.Value)
	case *array.Binary:
		return textReader(a.ValueString)
	case *array.LargeBinary:
		return textReader(a.ValueString)
	case *array.Dictionary:
		if read := cellReader(a.Dictionary()); read != nil {
			return func(i int, c *cell, row *fileRow) { read(a.GetValueIndex(i), c, row) }
		}
		return nil
	case *array.Timestamp:
		unit := int64(a.DataType().(*arrow.TimestampType).Unit.Multiplier())
		return timeReader(func(i int) int64 { return int64(a.Value(i)) }, unit)
	case *array.Date32:
		return timeReader(func(i int) int64 { return int64(a.Value(i)) }, 24*3600*1e9)
	case *array.Date64:
		return timeReader(func(i int) int64 { return int64(a.Value(i)) }, 1e6)
	case array.ListLike:
		return listReader(a)
	}
	return numberReader(a)
}

func numberReader(a arrow.Array) func(i int, c *cell, row *fileRow) {
	switch a := a.(type) {
	case *array.Uint8:
		return integers(a.Uint8Values())
	case *array.Uint16:
		return integers(a.Uint16Values())
	case *array.Uint32:
		return integers(a.Uint32Values())
	case *array.Uint64:
		return integers(a.Uint64Values())
	case *array.Int8:
		return integers(a.Int8Values())
	case *array.Int16:
		return integers(a.Int16Values())
	case *array.Int32:
		return integers(a.Int32Values())
	case *array.Int64:
		return integers(a.Int64Values())
	case *array.Float32:
		return floats(a.Float32Values())
	case *array.Float64:
		return floats(a.Float64Values())
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(i int, c *cell, _ *fileRow) { c.kind, c.number = numberCell, a.Value(i).ToFloat64(scale) }
	}
	return nil
}

func textReader(value func(int) string) func(i int, c *cell, row *fileRow) {
	return func(i int, c *cell, _ *fileRow) { c.kind, c.text = textCell, value(i) }
}

func integers[T uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64](
	values []T,
) func(i int, c *cell, row *fileRow) {
	return func(i int, c *cell, _ *fileRow) {
		if x := values[i]; x >= 0 {
			c.kind, c.integer = uintCell, uint64(x)
		} else {
			c.kind, c.number = numberCell, float64(x)
		}
	}
}

func floats[T float32 | float64](values []T) func(i int, c *cell, row *fileRow) {
	return func(i int, c *cell, _ *fileRow) {
		c.kind, c.number = numberCell, float64(values[i])
	}
}

// timeReader reads times in units of so many nanoseconds. One that does not fit
// becomes one that is refused.
func timeReader(value func(int) int64, unit int64) func(i int, c *cell, row *fileRow) {
	return func(i int, c *cell, _ *fileRow) {
		c.kind, c.integer = timeCell, math.MaxInt64
		if x := value(i); x <= math.MaxInt64/unit && x >= -math.MaxInt64/unit {
			c.integer = uint64(x * unit)
		}
	}
}

// listReader reads lists of numbers. A null in one becomes not a number.
func listReader(a array.ListLike) func(i int, c *cell, row *fileRow) {
	read := cellReader(a.ListValues())
	if read == nil {
		return nil
	}
	return func(i int, c *cell, row *fileRow) {
		from, to := a.ValueOffsets(i)
		start := len(row.list)
		for j := from; j < to; j++ {
			var x cell
			read(int(j), &x, row)
			value, p := x.float()
			if p != nil {
				value = math.NaN()
			}
			row.list = append(row.list, value)
		}
		c.kind, c.list = listCell, row.list[start:len(row.list):len(row.list)]
	}
}
