package graphstore

import (
	"fmt"
	"slices"
	"unsafe"
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

// rawBytes returns the memory of values.
func rawBytes[T numbers](values []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(zero)))
}

// elements returns memory as numbers, as many as fit.
func elements[T numbers](data []byte) []T {
	var zero T
	n := len(data) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), n)
}

// append adds the value at a place in memory, which is of the vector's kind, as a row.
func (v *vector) append(at unsafe.Pointer) {
	switch v.kind {
	case textVector:
		v.data = append(v.data, *(*string)(at)...)
	case bytesVector:
		v.data = append(v.data, *(*[]byte)(at)...)
	case u32ListVector:
		v.data = append(v.data, rawBytes(*(*[]uint32)(at))...)
	case f64ListVector, f64FixedVector:
		v.data = append(v.data, rawBytes(*(*[]float64)(at))...)
	default:
		v.data = append(v.data, unsafe.Slice((*byte)(at), v.kind.sizeOf())...)
	}
	if v.kind.hasOffsets() {
		v.offsets = append(v.offsets, int32(len(v.data)/v.kind.sizeOf()))
	}
	v.rows++
}

// appendValid says whether the next row to be appended is not null.
func (v *vector) appendValid(valid bool) {
	if v.rows%8 == 0 {
		v.valid = append(v.valid, 0)
	}
	if valid {
		v.valid[v.rows/8] |= 1 << (v.rows % 8)
	} else {
		v.nulls++
	}
}

// read writes row i to a place in memory, which is of the vector's kind. Texts and lists
// are copied, or else alias the vector.
func (v *vector) read(i int, at unsafe.Pointer, copied bool) {
	from, to := i*max(1, v.width), (i+1)*max(1, v.width)
	if v.kind.hasOffsets() {
		from, to = int(v.offsets[i]), int(v.offsets[i+1])
	}
	data := v.data[from*v.kind.sizeOf() : to*v.kind.sizeOf()]
	switch v.kind {
	case textVector:
		if *(*string)(at) = unsafe.String(unsafe.SliceData(data), len(data)); copied {
			*(*string)(at) = string(data)
		}
	case bytesVector:
		readList[byte](data, at, copied)
	case u32ListVector:
		readList[uint32](data, at, copied)
	case f64ListVector, f64FixedVector:
		readList[float64](data, at, copied)
	default:
		copy(unsafe.Slice((*byte)(at), len(data)), data)
	}
}

// readList writes a list to a place in memory, an empty one as nil.
func readList[T numbers](data []byte, at unsafe.Pointer, copied bool) {
	list := elements[T](data)
	if copied {
		list = slices.Clone(list)
	}
	*(*[]T)(at) = list
}

// has reports whether row i is not null.
func (v *vector) has(i int) bool { return v.valid == nil || v.valid[i/8]>>(i%8)&1 == 1 }

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

// hasOffsets reports whether rows are of various lengths, so that offsets say where each is.
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
		if !slices.IsSorted(v.offsets) {
			return fmt.Errorf("column %q has decreasing offsets", v.name)
		}
		need = int(v.offsets[v.rows])
	}
	if len(v.data) < need*v.kind.sizeOf() || v.valid != nil && 8*len(v.valid) < v.rows {
		return fmt.Errorf("column %q of %d rows has %d bytes", v.name, v.rows, len(v.data))
	}
	return nil
}
