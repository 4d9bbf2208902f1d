package graphstore

import (
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// fixed are the element types of columns: of fixed width and without pointers.
type fixed interface {
	~int32 | ~uint8 | ~uint32 | ~uint64 | ~int64 | ~float64
}

// column is a growing vector in an Arrow buffer. data aliases the buffer: read it again after every
// call that may grow the column.
type column[T fixed] struct {
	data []T
	buf  *memory.Buffer // nil before the first element
}

// growFreely is the largest number of elements at which a column still doubles when it grows; a
// larger one grows by a quarter, which wastes less.
const growFreely = 1 << 18

// resize sets the length to n; new elements are zero.
func (c *column[T]) resize(n int) {
	have := len(c.data)
	if n > cap(c.data) {
		c.reserve(n + max(min(n, growFreely), n/4))
	}
	c.data = c.data[:n]
	if n > have {
		clear(c.data[have:])
	}
}

// reserve moves the column to a buffer of at least n elements. It is unsafe in one place: Arrow
// buffers are bytes, aligned to 64, and the store reads and writes elements. The types of fixed
// have no pointers and no invalid values.
func (c *column[T]) reserve(n int) {
	var zero T
	width := int(unsafe.Sizeof(zero))
	have := len(c.data)
	if c.buf == nil {
		c.buf = memory.NewResizableBuffer(memory.DefaultAllocator)
	}
	c.buf.Reserve(n * width)
	c.buf.ResizeNoShrink(c.buf.Cap())
	raw := c.buf.Bytes()
	c.data = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/width)[:have]
}

// newColumn returns a column of n zeros without spare memory.
func newColumn[T fixed](n int) (c column[T]) {
	c.reserve(n)
	c.data = c.data[:n]
	return c
}

// array returns the column as Arrow data of a type, without a copy.
func (c *column[T]) array(t arrow.DataType) arrow.ArrayData {
	return array.NewData(t, len(c.data), []*memory.Buffer{nil, c.buf}, nil, 0, 0)
}

// append adds an element at the end.
func (c *column[T]) append(x T) {
	n := len(c.data)
	c.resize(n + 1)
	c.data[n] = x
}

// clone returns a copy without spare memory.
func (c *column[T]) clone() column[T] {
	copied := newColumn[T](len(c.data))
	copy(copied.data, c.data)
	return copied
}
