package graphstore

import "container/heap"

// heapPush and heapPop work on h, whose elements are *s. They do what heap.Push and
// heap.Pop do, which are not used because each of those allocates for passing an element
// as any: with windows, two to three times an event.
func heapPush[T any](h heap.Interface, s *[]T, x T) {
	*s = append(*s, x)
	heap.Fix(h, len(*s)-1)
}

func heapPop[T any](h heap.Interface, s *[]T) T {
	lowest, last := (*s)[0], len(*s)-1
	(*s)[0] = (*s)[last]
	if *s = (*s)[:last]; last > 0 {
		heap.Fix(h, 0)
	}
	return lowest
}

// freeIndices are indices that may be given away again, a heap with the lowest on top.
type freeIndices []uint32

func (f *freeIndices) push(x uint32) { heapPush(f, (*[]uint32)(f), x) }
func (f *freeIndices) pop() uint32   { return heapPop(f, (*[]uint32)(f)) }

// Len and the methods below are those of heap.Interface; heap.Fix calls the first three.
func (f freeIndices) Len() int           { return len(f) }
func (f freeIndices) Less(i, j int) bool { return f[i] < f[j] }
func (f freeIndices) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f freeIndices) Push(any)           { panic("graphstore: heapPush is to be used") }
func (f freeIndices) Pop() any           { panic("graphstore: heapPop is to be used") }
