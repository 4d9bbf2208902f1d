package event

import (
	"bytes"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// EncodeArrow returns the events [from, to) of a kind of b as the payload of one
// Arrow message: a schema and one record batch. Messages of 1,000 to 4,000 events
// are the fastest. Ids are written as uint64 when all of a column are integers,
// else as text; columns that say nothing but the default are left out.
//
// It returns an error for what a table cannot say: attributes that are null, of
// two types, or with the name of a column; predictions with different K. Those
// go as JSON. It panics if the range is not inside the batch.
func EncodeArrow(kind Kind, b *Batch, from, to int) ([]byte, error) {
	e := arrowEncoder{rows: to - from}
	defer e.release()
	var err error
	switch kind {
	case KindEdge:
		e.edges(b.Edges[from:to])
	case KindLabel:
		e.labels(b.Labels[from:to])
	case KindPrediction:
		err = e.predictions(b.Predictions[from:to])
	case KindMember:
		e.members(b.Members[from:to])
	case KindVertex:
		err = e.vertices(b.Vertices[from:to])
	case KindControl:
		e.controls(b.Controls[from:to])
	default:
		panic(fmt.Sprintf("event: EncodeArrow: no such kind as %v", kind))
	}
	if err != nil {
		return nil, fmt.Errorf("event: encode %v events %d to %d: %w", kind, from, to, err)
	}
	return e.encode()
}

// arrowEncoder collects the columns of one record batch.
type arrowEncoder struct {
	rows    int
	fields  []arrow.Field
	columns []arrow.Array
}

// release lets go of the columns.
func (e *arrowEncoder) release() {
	for _, c := range e.columns {
		c.Release()
	}
}

// encode writes the columns as a stream.
func (e *arrowEncoder) encode() ([]byte, error) {
	metadata := arrow.NewMetadata([]string{schemaVersionKey}, []string{schemaVersion})
	schema := arrow.NewSchema(e.fields, &metadata)
	record := array.NewRecord(schema, e.columns, int64(e.rows))
	defer record.Release()
	var out bytes.Buffer
	size := 1024
	for _, c := range e.columns {
		size += 256 + int(c.Data().SizeInBytes())
	}
	out.Grow(size)
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Write(record); err != nil {
		return nil, fmt.Errorf("event: write Arrow: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("event: write Arrow: %w", err)
	}
	return out.Bytes(), nil
}

// add adds a column over buffers, the first of which is the validity.
func (e *arrowEncoder) add(name string, t arrow.DataType, nulls int, buffers ...[]byte) {
	wrapped := make([]*memory.Buffer, len(buffers))
	for i, b := range buffers {
		if b != nil {
			wrapped[i] = memory.NewBufferBytes(b)
		}
	}
	data := array.NewData(t, e.rows, wrapped, nil, nulls, 0)
	defer data.Release()
	e.fields = append(e.fields, arrow.Field{Name: name, Type: t, Nullable: nulls > 0})
	e.columns = append(e.columns, array.MakeFromData(data))
}

// ids adds a column of vertex ids.
func (e *arrowEncoder) ids(name string, id func(i int) ID) {
	values := make([]uint64, e.rows)
	for i := range values {
		v := id(i)
		if v.Name != "" {
			e.texts(name, func(i int) string { return id(i).String() })
			return
		}
		values[i] = v.Number
	}
	e.add(name, arrow.PrimitiveTypes.Uint64, 0, nil, arrow.Uint64Traits.CastToBytes(values))
}

// texts adds a column of text.
func (e *arrowEncoder) texts(name string, text func(i int) string) {
	offsets := make([]int32, 1, e.rows+1)
	var heap []byte
	for i := range e.rows {
		heap = append(heap, text(i)...)
		offsets = append(offsets, int32(len(heap)))
	}
	e.add(name, arrow.BinaryTypes.String, 0, nil, arrow.Int32Traits.CastToBytes(offsets), heap)
}

// optionalTexts adds a column of text where "" is null, unless all are.
func (e *arrowEncoder) optionalTexts(name string, text func(i int) string) {
	if valid, nulls := e.validity(func(i int) bool { return text(i) != "" }); nulls < e.rows {
		e.texts(name, text)
		e.nullable(valid, nulls)
	}
}

// nullable puts nulls into the last column.
func (e *arrowEncoder) nullable(valid []byte, nulls int) {
	if nulls == 0 {
		return
	}
	last := len(e.columns) - 1
	old := e.columns[last].Data()
	buffers := append([]*memory.Buffer{memory.NewBufferBytes(valid)}, old.Buffers()[1:]...)
	data := array.NewData(old.DataType(), e.rows, buffers, nil, nulls, 0)
	defer data.Release()
	e.columns[last].Release()
	e.columns[last] = array.MakeFromData(data)
	e.fields[last].Nullable = true
}

// validity returns the bits of the rows for which ok holds, and how many do not.
func (e *arrowEncoder) validity(ok func(i int) bool) (valid []byte, nulls int) {
	valid = make([]byte, (e.rows+7)/8)
	for i := range e.rows {
		if ok(i) {
			valid[i/8] |= 1 << (i % 8)
		} else {
			nulls++
		}
	}
	return valid, nulls
}

// floats adds a column of numbers: 32 bits wide when that says the same.
func (e *arrowEncoder) floats(name string, f func(i int) float64) {
	wide, narrow, same := make([]float64, e.rows), make([]float32, e.rows), true
	for i := range wide {
		wide[i] = f(i)
		narrow[i] = float32(wide[i])
		same = same && math.Float64bits(float64(narrow[i])) == math.Float64bits(wide[i])
	}
	if same {
		e.add(name, arrow.PrimitiveTypes.Float32, 0, nil, arrow.Float32Traits.CastToBytes(narrow))
		return
	}
	e.add(name, arrow.PrimitiveTypes.Float64, 0, nil, arrow.Float64Traits.CastToBytes(wide))
}

// times adds the column of times, unless none is given.
func (e *arrowEncoder) times(t func(i int) Time) {
	values := make([]int64, e.rows)
	given := false
	for i := range values {
		values[i] = int64(t(i))
		given = given || values[i] != 0
	}
	if given {
		ticks := arrow.Int64Traits.CastToBytes(values)
		e.add("time", arrow.FixedWidthTypes.Timestamp_ns, 0, nil, ticks)
	}
}

// ops adds the column of operations, 1 for the second of a kind's two, unless
// all are the first.
func (e *arrowEncoder) ops(second func(i int) bool) {
	values := make([]uint8, e.rows)
	given := false
	for i := range values {
		if second(i) {
			values[i] = 1
			given = true
		}
	}
	if given {
		e.add("op", arrow.PrimitiveTypes.Uint8, 0, nil, values)
	}
}

// bools adds a column of booleans.
func (e *arrowEncoder) bools(name string, f func(i int) bool) {
	set, _ := e.validity(f)
	e.add(name, arrow.FixedWidthTypes.Boolean, 0, nil, set)
}
