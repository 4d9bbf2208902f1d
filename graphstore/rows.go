package graphstore

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"gqlstream/ingest/event"
)

// Rows of a record batch at most, and bytes of texts and lists in it before it is
// closed: Arrow's offsets have 32 bits.
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
	name  string
	kind  vectorKind
	width int
	at    uintptr // of the value in the struct
	valid uintptr // of the truth value that says whether there is one; 0 where there always is
}

// columnsOf returns the columns that the fields of a struct make, those of embedded
// structs included. A column is named as its field in lower case, or as the field's tag
// column says; with the tag fixed, its lists have that width. It panics on a field of a
// type that no column has.
func columnsOf[T any](width int) (columns []rowColumn) {
	row := reflect.TypeFor[T]()
	for _, f := range reflect.VisibleFields(row) {
		if f.Anonymous {
			continue
		}
		c := rowColumn{name: cmp.Or(f.Tag.Get("column"), strings.ToLower(f.Name))}
		for i := range f.Index {
			c.at += row.FieldByIndex(f.Index[:i+1]).Offset
		}
		typ := f.Type
		if typ.Kind() == reflect.Struct {
			c.valid = c.at + typ.Field(1).Offset
			typ = typ.Field(0).Type
		}
		var ok bool
		if c.kind, ok = kindOf(typ); !ok || !f.IsExported() {
			panic(fmt.Sprintf("graphstore: field %s of %v is no column", f.Name, row))
		}
		if f.Tag.Get("list") == "fixed" {
			c.kind, c.width = f64FixedVector, width
		}
		columns = append(columns, c)
	}
	return columns
}

// kindOf returns the kind of column that holds a Go type, and whether there is one.
func kindOf(t reflect.Type) (vectorKind, bool) {
	if t == reflect.TypeFor[event.Time]() {
		return timeVector, true
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8:
		return u8Vector, true
	case reflect.Int32:
		return i32Vector, true
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

// inChunks visits rows as vectors, chunk by chunk, at least one chunk, which may be
// empty: a table without rows still has its columns. The vectors are copies.
func inChunks[T any](columns []rowColumn, rows iter.Seq[T], visit func([]vector) error) error {
	row, chunk, size := new(T), newChunk(columns, nil), 0
	for *row = range rows {
		if chunk[0].rows == chunkRowsMax || size >= chunkBytesMax {
			if err := visit(finished(chunk)); err != nil {
				return err
			}
			chunk, size = newChunk(columns, chunk), 0
		}
		for i := range columns {
			c, v := &columns[i], &chunk[i]
			if c.valid != 0 {
				v.appendValid(*(*bool)(unsafe.Add(unsafe.Pointer(row), c.valid)))
			}
			before := len(v.data)
			if v.append(unsafe.Add(unsafe.Pointer(row), c.at)); c.kind.hasOffsets() {
				size += len(v.data) - before
			}
		}
	}
	return visit(finished(chunk))
}

// newChunk returns vectors without rows, with room for what the chunk before had.
func newChunk(columns []rowColumn, before []vector) []vector {
	chunk := make([]vector, len(columns))
	for i, c := range columns {
		chunk[i] = vector{name: c.name, kind: c.kind, width: c.width, data: []byte{}}
		if before != nil {
			chunk[i].data = make([]byte, 0, len(before[i].data)*9/8)
		}
		if c.kind.hasOffsets() {
			chunk[i].offsets = []int32{0}
		}
	}
	return chunk
}

// finished returns a chunk without bits that say that nothing is null.
func finished(chunk []vector) []vector {
	for i := range chunk {
		if chunk[i].nulls == 0 {
			chunk[i].valid = nil
		}
	}
	return chunk
}

// rowsAtOnce rows are read column by column before they are visited.
const rowsAtOnce = 256

// eachRow visits the rows of a table, which must have these columns. Texts and lists are
// copies, or else hold only during the visit.
func eachRow[T any](t Table, columns []rowColumn, data []byte, copied bool, visit func(*T) error) error {
	some := make([]T, rowsAtOnce)
	return eachChunk(t, columns, data, func(chunk []vector) error {
		for from := 0; from < chunk[0].rows; from += rowsAtOnce {
			rows := some[:min(rowsAtOnce, chunk[0].rows-from)]
			readChunk(rows, columns, chunk, from, copied)
			for i := range rows {
				if err := visit(&rows[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// eachChunk visits the chunks of a table, which must have these columns.
func eachChunk(t Table, columns []rowColumn, data []byte, visit func([]vector) error) error {
	return readTable(t, data, func(chunk []vector) error {
		same := func(v vector, c rowColumn) bool {
			return v.name == c.name && v.kind == c.kind && v.width == c.width && v.rows == chunk[0].rows && (v.nulls == 0 || c.valid != 0)
		}
		if !slices.EqualFunc(chunk, columns, same) {
			return fmt.Errorf("table %s has not the columns of this version and configuration", t)
		}
		return visit(chunk)
	})
}

// readChunk makes rows those of a chunk from one on.
func readChunk[T any](rows []T, columns []rowColumn, chunk []vector, from int, copied bool) {
	clear(rows)
	for j := range chunk {
		v, c := &chunk[j], &columns[j]
		for i := range rows {
			at := unsafe.Pointer(&rows[i])
			if c.valid != 0 {
				if !v.has(from + i) {
					continue
				}
				*(*bool)(unsafe.Add(at, c.valid)) = true
			}
			v.read(from+i, unsafe.Add(at, c.at), copied)
		}
	}
}

// WriteRows writes structs as an uncompressed Arrow IPC file with a column for
// each field, those of embedded structs included, named as the field in lower
// case. A field is a bool, uint32, uint64, float64, event.Time, string, []byte,
// []uint32 or []float64, or of a type made of one of these; it panics on another.
// Empty slices come back as nil.
func WriteRows[T any](w io.Writer, rows []T) error {
	_, err := writeTable(w, func(visit func([]vector) error) error {
		return inChunks(columnsOf[T](0), slices.Values(rows), visit)
	})
	if err != nil {
		return fmt.Errorf("graphstore: write rows: %w", err)
	}
	return nil
}

// ReadRows reads what WriteRows wrote of the same struct, in bytes whose checksum
// the caller has verified: damaged ones can end the process.
func ReadRows[T any](data []byte) (rows []T, err error) {
	columns := columnsOf[T](0)
	err = eachChunk("rows", columns, data, func(chunk []vector) error {
		before, n := len(rows), chunk[0].rows
		rows = slices.Grow(rows, n)[:before+n]
		readChunk(rows[before:], columns, chunk, 0, true)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("graphstore: %w", err)
	}
	return rows, nil
}
