package graphstore

import (
	"fmt"
	"unsafe"

	"gqlstream/ingest/event"
)

// vectorKind is the type of a vector's elements.
type vectorKind uint8

const (
	u8Vector vectorKind = iota
	i32Vector
	u32Vector
	u64Vector
	f64Vector
	timeVector     // event.Time
	textVector     // UTF-8
	bytesVector    // of any kind
	u32ListVector  // lists of u32
	f64ListVector  // lists of f64
	f64FixedVector // lists of width f64
)

// vector is one column of some rows of a table in plain memory, laid out as
// Arrow wants it, so that snapshot.go converts either way without a copy.
type vector struct {
	name    string
	kind    vectorKind
	width   int     // f64FixedVector only
	rows    int     //
	offsets []int32 // texts, bytes and lists only: rows + 1
	data    []byte  // the elements, or what the offsets point into
	valid   []byte  // a bit for each row, lowest first; nil when every row is
	nulls   int
}

// numbers are the elements of vectors.
type numbers interface {
	~uint8 | ~int32 | ~uint32 | ~uint64 | ~float64 | ~int64
}

func kindOf[T numbers]() vectorKind {
	var zero T
	switch any(zero).(type) {
	case uint8:
		return u8Vector
	case int32:
		return i32Vector
	case uint32, Vertex, Community:
		return u32Vector
	case uint64, event.Position:
		return u64Vector
	case event.Time:
		return timeVector
	}
	return f64Vector
}

// rawBytes returns the memory of values.
func rawBytes[T numbers](values []T) []byte {
	if len(values) == 0 {
		return []byte{}
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(values)*int(unsafe.Sizeof(zero)))
}

// elements returns the memory of a vector as numbers, of which it holds as many
// as fit.
func elements[T numbers](data []byte) []T {
	var zero T
	n := len(data) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), n)
}

// vectorOf returns values, which it keeps, as a vector.
func vectorOf[T numbers](name string, values []T) vector {
	return vector{name: name, kind: kindOf[T](), rows: len(values), data: rawBytes(values)}
}

// listsOf returns a vector of lists, which keeps both slices.
func listsOf[T numbers](name string, offsets []int32, values []T) vector {
	kind := u32ListVector
	if kindOf[T]() == f64Vector {
		kind = f64ListVector
	}
	return vector{name: name, kind: kind, rows: len(offsets) - 1, offsets: offsets, data: rawBytes(values)}
}

// texts collects the rows of a text vector.
type texts struct {
	offsets []int32
	bytes   []byte
	valid   validity
}

func (t *texts) append(text string, valid bool) {
	if len(t.offsets) == 0 {
		t.offsets = append(t.offsets, 0)
	}
	t.bytes = append(t.bytes, text...)
	t.offsets = append(t.offsets, int32(len(t.bytes)))
	t.valid.append(valid)
}

func (t *texts) vector(name string) vector {
	if len(t.offsets) == 0 {
		t.offsets = []int32{0}
	}
	v := vector{name: name, kind: textVector, rows: len(t.offsets) - 1, offsets: t.offsets, data: t.bytes}
	return v.with(t.valid)
}

// validity collects which rows are not null.
type validity struct {
	bits  []byte
	rows  int
	nulls int
}

func (b *validity) append(valid bool) {
	if b.rows%8 == 0 {
		b.bits = append(b.bits, 0)
	}
	if valid {
		b.bits[b.rows/8] |= 1 << (b.rows % 8)
	} else {
		b.nulls++
	}
	b.rows++
}

// with returns the vector with nulls, if there are any.
func (v vector) with(b validity) vector {
	if b.nulls > 0 {
		v.valid, v.nulls = b.bits, b.nulls
	}
	return v
}

// has reports whether row i is not null.
func (v *vector) has(i int) bool { return v.valid == nil || v.valid[i/8]>>(i%8)&1 == 1 }

// text returns row i of a text vector. It aliases the vector.
func (v *vector) text(i int) string {
	from, to := v.offsets[i], v.offsets[i+1]
	if from == to {
		return ""
	}
	return unsafe.String(&v.data[from], int(to-from))
}

// listOf returns row i of a vector of lists. It aliases the vector.
func listOf[T numbers](v *vector, i int) []T {
	return elements[T](v.data)[v.offsets[i]:v.offsets[i+1]]
}

// sizeOf returns the bytes of an element, or of an element of a list.
func (k vectorKind) sizeOf() int {
	switch k {
	case u8Vector, textVector, bytesVector:
		return 1
	case i32Vector, u32Vector, u32ListVector:
		return 4
	}
	return 8
}

func (k vectorKind) hasOffsets() bool {
	return k == textVector || k == bytesVector || k == u32ListVector || k == f64ListVector
}

// check reports whether the vector's parts fit together, so that no row of it can
// be read out of bounds.
func (v *vector) check() error {
	need := v.rows * max(1, v.width)
	if v.kind.hasOffsets() {
		if len(v.offsets) != v.rows+1 || v.offsets[0] < 0 {
			return fmt.Errorf("column %q has %d offsets for %d rows", v.name, len(v.offsets), v.rows)
		}
		for i := range v.rows {
			if v.offsets[i] > v.offsets[i+1] {
				return fmt.Errorf("column %q has decreasing offsets at row %d", v.name, i)
			}
		}
		need = int(v.offsets[v.rows])
	}
	if len(v.data) < need*v.kind.sizeOf() || v.valid != nil && 8*len(v.valid) < v.rows {
		return fmt.Errorf("column %q of %d rows has %d bytes", v.name, v.rows, len(v.data))
	}
	return nil
}
