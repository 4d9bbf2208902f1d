package graphstore

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"gqlstream/ingest/event"
)

// rowsChunkBytesMax is how much of the variable columns goes into one chunk, far
// from the 2 GiB that the offsets of a chunk can count.
const rowsChunkBytesMax = 256 << 20

// WriteRows writes structs as an uncompressed Arrow IPC file with a column for
// each field, those of embedded structs included, named as the field in lower
// case. A field is a bool, uint32, uint64, float64, event.Time, string, []byte,
// []uint32 or []float64, or of a type made of one of these; it panics on another.
// Empty slices come back as nil.
func WriteRows[T any](w io.Writer, rows []T) error {
	columns := rowColumns[T]()
	_, err := writeTable(w, func(visit func([]vector) error) error {
		for from := 0; ; {
			to := rowsInChunk(columns, reflect.ValueOf(rows), from)
			vectors := make([]vector, len(columns))
			for i, c := range columns {
				vectors[i] = c.gather(reflect.ValueOf(rows[from:to]))
			}
			if err := visit(vectors); err != nil || to == len(rows) {
				return err
			}
			from = to
		}
	})
	if err != nil {
		return fmt.Errorf("graphstore: write rows: %w", err)
	}
	return nil
}

// ReadRows reads what WriteRows wrote of the same struct, in bytes whose checksum
// the caller has verified: damaged ones can end the process.
func ReadRows[T any](data []byte) ([]T, error) {
	columns := rowColumns[T]()
	var out []T
	err := readTable("rows", data, func(vectors []vector) error {
		if len(vectors) != len(columns) {
			return fmt.Errorf("%d columns, want %d", len(vectors), len(columns))
		}
		rows := make([]T, vectors[0].rows)
		for i, c := range columns {
			v := &vectors[i]
			if v.name != c.name || v.kind != c.kind || v.rows != len(rows) || v.nulls > 0 {
				return fmt.Errorf("column %d is %q, want %q of its kind without nulls", i, v.name, c.name)
			}
			c.scatter(v, reflect.ValueOf(rows))
		}
		out = append(out, rows...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("graphstore: %w", err)
	}
	return out, nil
}

// CountRows returns how many rows an Arrow IPC file of ours has, whose checksum
// the caller has verified.
func CountRows(data []byte) (rows int64, err error) {
	err = readTable("rows", data, func(vectors []vector) error {
		rows += int64(vectors[0].rows)
		return nil
	})
	return rows, err
}

// rowColumn is one field of a struct as a column.
type rowColumn struct {
	name  string
	kind  vectorKind
	field []int // as reflect.Value.FieldByIndex takes it
}

func rowColumns[T any]() (columns []rowColumn) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if f.Anonymous {
			continue
		}
		kind, ok := rowKind(f.Type)
		if !ok || !f.IsExported() {
			panic(fmt.Sprintf("graphstore: field %s of %v is no column", f.Name, reflect.TypeFor[T]()))
		}
		columns = append(columns, rowColumn{strings.ToLower(f.Name), kind, f.Index})
	}
	return columns
}

func rowKind(t reflect.Type) (vectorKind, bool) {
	if t == reflect.TypeFor[event.Time]() {
		return timeVector, true
	}
	switch t.Kind() {
	case reflect.Bool:
		return u8Vector, true
	case reflect.Uint32:
		return u32Vector, true
	case reflect.Uint64:
		return u64Vector, true
	case reflect.Float64:
		return f64Vector, true
	case reflect.String:
		return textVector, true
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Uint8:
			return bytesVector, true
		case reflect.Uint32:
			return u32ListVector, true
		case reflect.Float64:
			return f64ListVector, true
		}
	}
	return 0, false
}

// rowsInChunk returns where the chunk that begins at a row ends.
func rowsInChunk(columns []rowColumn, rows reflect.Value, from int) (to int) {
	size := 0
	for to = from; to < rows.Len() && to-from < chunkRowsMax && size < rowsChunkBytesMax; to++ {
		for _, c := range columns {
			if c.kind.hasOffsets() {
				size += c.kind.sizeOf() * rows.Index(to).FieldByIndex(c.field).Len()
			}
		}
	}
	return to
}

// gather returns the column of rows, a slice of structs, as a vector.
func (c rowColumn) gather(rows reflect.Value) vector {
	v := vector{name: c.name, kind: c.kind, rows: rows.Len(), data: []byte{}}
	if c.kind.hasOffsets() {
		v.offsets = []int32{0}
	}
	for i := range rows.Len() {
		value := rows.Index(i).FieldByIndex(c.field)
		switch c.kind {
		case u8Vector:
			v.data = append(v.data, asByte(value.Bool()))
		case u32Vector:
			v.data = append(v.data, rawBytes([]uint32{uint32(value.Uint())})...)
		case u64Vector:
			v.data = append(v.data, rawBytes([]uint64{value.Uint()})...)
		case timeVector:
			v.data = append(v.data, rawBytes([]event.Time{event.Time(value.Int())})...)
		case f64Vector:
			v.data = append(v.data, rawBytes([]float64{value.Float()})...)
		case textVector:
			v.data = append(v.data, value.String()...)
		case bytesVector:
			v.data = append(v.data, value.Bytes()...)
		case u32ListVector:
			v.data = append(v.data, rawBytes(value.Convert(reflect.TypeFor[[]uint32]()).Interface().([]uint32))...)
		case f64ListVector:
			v.data = append(v.data, rawBytes(value.Convert(reflect.TypeFor[[]float64]()).Interface().([]float64))...)
		}
		if c.kind.hasOffsets() {
			v.offsets = append(v.offsets, int32(len(v.data)/c.kind.sizeOf()))
		}
	}
	return v
}

// scatter copies a vector, which was checked, into the field of rows.
func (c rowColumn) scatter(v *vector, rows reflect.Value) {
	for i := range rows.Len() {
		field := rows.Index(i).FieldByIndex(c.field)
		switch c.kind {
		case u8Vector:
			field.SetBool(v.data[i] != 0)
		case u32Vector:
			field.SetUint(uint64(elements[uint32](v.data)[i]))
		case u64Vector:
			field.SetUint(elements[uint64](v.data)[i])
		case timeVector:
			field.SetInt(int64(elements[event.Time](v.data)[i]))
		case f64Vector:
			field.SetFloat(elements[float64](v.data)[i])
		case textVector:
			field.SetString(string(append([]byte(nil), v.text(i)...)))
		case bytesVector:
			field.SetBytes(append([]byte(nil), v.data[v.offsets[i]:v.offsets[i+1]]...))
		case u32ListVector:
			setList(field, listOf[uint32](v, i))
		case f64ListVector:
			setList(field, listOf[float64](v, i))
		}
	}
}

// setList copies a list into a field; an empty one becomes nil.
func setList[N uint32 | float64](field reflect.Value, list []N) {
	if len(list) > 0 {
		field.Set(reflect.ValueOf(append([]N(nil), list...)).Convert(field.Type()))
	}
}

func asByte(on bool) byte {
	if on {
		return 1
	}
	return 0
}
