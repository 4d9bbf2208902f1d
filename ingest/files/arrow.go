package files

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"gqlstream/ingest/wire"
)

// recordTable reads the rows of Arrow arrays, from Arrow or Parquet files. These are the user's own
// files. A damaged one gives an error: the readers find it, or they panic and the panic is
// recovered here.
type recordTable struct {
	load    func() ([]arrow.Array, error) // the columns of the next rows, not retained; io.EOF
	slots   []int                         // slots of these columns
	columns *columns
	endless bool // an Arrow stream without the mark of its end

	values []arrow.Array
	rows   int // of values
	at     int // index of the next row
	number int64
	last   *fileRow
}

// next reads one row.
func (t *recordTable) next(row *fileRow) (err error) {
	defer recoverDamage(&err)
	for t.at == t.rows {
		if err := t.loadRows(); err != nil {
			return err
		}
	}
	t.number++
	t.last = row
	row.reset(len(t.columns.names))
	for i, slot := range t.slots {
		if slot >= 0 && !readValue(t.values[i], t.at, &row.cells[slot], row) {
			return unread(t.columns.slotName(slot), t.values[i].DataType())
		}
	}
	t.at++
	return nil
}

// unread is the error of a column of a type that is not read.
func unread(name string, t arrow.DataType) error {
	return fmt.Errorf(
		"column %s: values of type %v are not read: write the column as text (cast it to "+
			"a string) or as numbers", name, t)
}

func (t *recordTable) loadRows() (err error) {
	if t.values, err = t.load(); err != nil {
		return err
	}
	t.rows, t.at = t.values[0].Len(), 0
	for i, a := range t.values {
		if a.Len() != t.rows {
			return fmt.Errorf("column %d has %d rows, the first has %d", i, a.Len(), t.rows)
		}
	}
	return checkRows(t.values, t.rows)
}

func (t *recordTable) place() int64 { return t.number }

// text renders the last row as JSON.
func (t *recordTable) text() []byte {
	return wire.AppendRow(nil, t.last.cells, t.columns.slotName)
}

// boundedAllocator panics if a buffer is larger than any real one: damaged lengths would otherwise
// end the process, which no recover can prevent.
type boundedAllocator struct {
	memory.Allocator
	max int
}

const (
	// fileBufferBytesMax bounds one buffer of a column.
	fileBufferBytesMax = 1 << 30
	// fileBufferBytesMin and unpackedMax bound one of a small file: that many bytes, and so many
	// more for each byte of the file, which may be packed.
	fileBufferBytesMin = 64 << 20
	unpackedMax        = 1 << 10
)

// allocatorOf returns the allocator for reading a file of a size.
func allocatorOf(size int64) boundedAllocator {
	return boundedAllocator{
		memory.DefaultAllocator,
		int(min(fileBufferBytesMax, fileBufferBytesMin+unpackedMax*min(size, fileBufferBytesMax))),
	}
}

// withinFile lets the reader of a file of a size take every message that fits into it. The reader
// refuses bodies of more than 256 MiB by itself, which large files have.
func withinFile(size int64) []ipc.Option {
	return []ipc.Option{
		ipc.WithAllocator(allocatorOf(size)), ipc.WithMetadataSizeLimit(size),
		ipc.WithBodySizeLimit(size),
	}
}

func (a boundedAllocator) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}

func (a boundedAllocator) check(size int) {
	if size < 0 || size > a.max {
		panic(fmt.Sprintf("a buffer of %d bytes, at most %d are read", size, a.max))
	}
}

// recoverDamage turns a panic about damaged bytes into an error.
func recoverDamage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged: %v", p)
	}
}

const (
	arrowMagic     = "ARROW1" // begins and ends an Arrow file
	arrowSuffix    = 10       // bytes after its footer: the footer's length, and the magic
	schemaBytesMax = 1 << 20  // bytes of metadata
)

// newArrowTable reads an Arrow IPC file (Feather files are IPC files) by its footer, or else an
// Arrow stream.
func newArrowTable(f *openedFile, c *columns) (t *recordTable, err error) {
	defer recoverDamage(&err)
	size, err := f.file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return nil, cmp.Or(err, errors.New("empty, want an Arrow file"))
	}
	head := make([]byte, min(size, schemaBytesMax))
	if _, err := f.file.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte("FEA1")) {
		return nil, errors.New("Feather of version 1 is not read; this makes a file that is: " +
			foreignAdvice(f.file.Name(), readFeather))
	}
	if !bytes.HasPrefix(head, []byte(arrowMagic)) {
		return newArrowStream(f, c, head, size)
	}
	if err := checkFooter(f.file, size); err != nil {
		return nil, fmt.Errorf("not an Arrow file: %w", err)
	}
	reader, err := ipc.NewFileReader(f.file, withinFile(size)...)
	if err != nil {
		return nil, notOpened("an Arrow file", err)
	}
	if err := checkSchema(reader.Schema()); err != nil {
		return nil, err
	}
	next := 0
	t = &recordTable{columns: c, load: func() ([]arrow.Array, error) {
		if next == reader.NumRecords() {
			return nil, io.EOF
		}
		record, err := reader.RecordBatch(next) // the reader owns it until the next one
		if err != nil {
			return nil, err
		}
		next++
		return record.Columns(), nil
	}}
	f.release = func() { reader.Close() }
	t.slots, err = setSchema(c, reader.Schema())
	return t, err
}

// newArrowStream reads an Arrow stream of a size that begins with head.
func newArrowStream(f *openedFile, c *columns, head []byte, size int64) (*recordTable, error) {
	if err := wire.CheckArrowSchema(head); err != nil {
		return nil, fmt.Errorf("not an Arrow file or stream: %w", err)
	}
	ended, err := wire.CheckArrowStream(f.file, size)
	if err != nil {
		return nil, err
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	reader, err := ipc.NewReader(bufio.NewReader(f.file), withinFile(size)...)
	if err != nil {
		return nil, notOpened("an Arrow stream", err)
	}
	f.release = reader.Release
	if err := checkSchema(reader.Schema()); err != nil {
		return nil, err
	}
	t := &recordTable{columns: c, endless: !ended, load: func() ([]arrow.Array, error) {
		if !reader.Next() {
			return nil, cmp.Or(reader.Err(), io.EOF)
		}
		return reader.RecordBatch().Columns(), nil // the reader owns it until the next one
	}}
	t.slots, err = setSchema(c, reader.Schema())
	return t, err
}

// checkFooter checks the footer of a file, and the messages before it, before the Arrow reader
// trusts their counts and allocates accordingly: a flipped bit can ask for more memory than there
// is, which ends the process.
func checkFooter(r io.ReaderAt, size int64) error {
	tail := make([]byte, arrowSuffix)
	_, err := r.ReadAt(tail, max(0, size-arrowSuffix))
	length := int64(binary.LittleEndian.Uint32(tail))
	if err != nil || string(tail[4:]) != arrowMagic ||
		length > size-arrowSuffix-int64(len(arrowMagic)) {
		return fmt.Errorf("damaged: %d bytes that do not end as one", size)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-arrowSuffix-length); err != nil {
		return err
	}
	return wire.CheckArrowFile(r, footer, size)
}

func fieldNames(schema *arrow.Schema) []string {
	names := make([]string, schema.NumFields())
	for i, field := range schema.Fields() {
		names[i] = field.Name
	}
	return names
}

// readValue sets c to value i of an array. It returns false for types that are not read. Lists use
// the memory of the row.
func readValue(a arrow.Array, i int, c *wire.Cell, row *fileRow) bool {
	if a.IsNull(i) {
		c.Kind = wire.NullCell
		return true
	}
	switch a := a.(type) {
	case *array.Null:
		c.Kind = wire.NullCell
	case *array.Boolean:
		if c.Kind = wire.BoolCell; a.Value(i) {
			c.Integer = 1
		}
	case *array.String:
		c.Kind, c.Text = wire.TextCell, a.Value(i)
	case *array.LargeString:
		c.Kind, c.Text = wire.TextCell, a.Value(i)
	case *array.StringView:
		c.Kind, c.Text = wire.TextCell, a.Value(i)
	case *array.Binary:
		c.Kind, c.Text = wire.TextCell, a.ValueString(i)
	case *array.LargeBinary:
		c.Kind, c.Text = wire.TextCell, a.ValueString(i)
	case *array.BinaryView:
		c.Kind, c.Text = wire.TextCell, a.ValueString(i)
	case *array.Dictionary:
		return readValue(a.Dictionary(), a.GetValueIndex(i), c, row)
	case *array.RunEndEncoded:
		return readValue(a.Values(), a.GetPhysicalIndex(i), c, row)
	case array.ExtensionArray:
		if a.ExtensionType().ExtensionName() == "arrow.uuid" {
			c.Kind, c.Text = wire.TextCell, a.ValueStr(i)
			return true
		}
		return readValue(a.Storage(), i, c, row)
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		setTime(c, int64(a.Value(i)), int64(t.Unit.Multiplier()))
		c.Naive = t.TimeZone == ""
	case *array.Date32:
		setTime(c, int64(a.Value(i)), 24*3600*1e9)
		c.Naive = true
	case *array.Date64:
		setTime(c, int64(a.Value(i)), 1e6)
		c.Naive = true
	case array.ListLike:
		return readList(a, i, c, row)
	default:
		return readNumber(a, i, c)
	}
	return true
}

// readNumber sets c to value i of an array of numbers.
func readNumber(a arrow.Array, i int, c *wire.Cell) bool {
	switch a := a.(type) {
	case *array.Uint8:
		c.Kind, c.Integer = wire.UintCell, uint64(a.Value(i))
	case *array.Uint16:
		c.Kind, c.Integer = wire.UintCell, uint64(a.Value(i))
	case *array.Uint32:
		c.Kind, c.Integer = wire.UintCell, uint64(a.Value(i))
	case *array.Uint64:
		c.Kind, c.Integer = wire.UintCell, a.Value(i)
	case *array.Int8:
		c.SetInteger(int64(a.Value(i)))
	case *array.Int16:
		c.SetInteger(int64(a.Value(i)))
	case *array.Int32:
		c.SetInteger(int64(a.Value(i)))
	case *array.Int64:
		c.SetInteger(a.Value(i))
	case *array.Float16:
		c.Kind, c.Number = wire.NumberCell, float64(a.Value(i).Float32())
	case *array.Float32:
		c.Kind, c.Number = wire.NumberCell, float64(a.Value(i))
	case *array.Float64:
		c.Kind, c.Number = wire.NumberCell, a.Value(i)
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		c.SetDigits(plainDecimal(a.ValueStr(i)))
	default:
		return false
	}
	return true
}

// plainDecimal removes trailing zeros of the fraction from a decimal number, so that a whole number
// has only digits.
func plainDecimal(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// setTime sets c to a time in units of that many nanoseconds. A time out of range becomes a value
// that is refused later.
func setTime(c *wire.Cell, x, unit int64) {
	c.Kind, c.Integer = wire.TimeCell, math.MaxInt64
	if x <= math.MaxInt64/unit && x >= -math.MaxInt64/unit {
		c.Integer = uint64(x * unit)
	}
}

// readList sets c to a list of numbers.
func readList(a array.ListLike, i int, c *wire.Cell, row *fileRow) bool {
	from, to := a.ValueOffsets(i)
	c.Kind, c.List = wire.ListCell, row.list[len(row.list):]
	for j := from; j < to; j++ {
		var x wire.Cell
		if !readValue(a.ListValues(), int(j), &x, row) {
			return false
		}
		c.Append(x.Float())
	}
	row.list = append(row.list, c.List...)
	return true
}
