package graphstore

// The functions below keep a binary heap with the lowest element at 0. Under a
// total order, what is popped depends on what is held, not on how it came there.

func heapPush[T any](heap *[]T, x T, less func(a, b T) bool) {
	*heap = append(*heap, x)
	h := *heap
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !less(h[i], h[parent]) {
			return
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

func heapPop[T any](heap *[]T, less func(a, b T) bool) T {
	h := *heap
	lowest := h[0]
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	*heap = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h) {
			return lowest
		}
		if child+1 < len(h) && less(h[child+1], h[child]) {
			child++
		}
		if !less(h[child], h[i]) {
			return lowest
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

func lowerIndex(a, b uint32) bool { return a < b }

// freeIndices are indices that may be given away again, the lowest first.
type freeIndices []uint32

func (f *freeIndices) push(x uint32) { heapPush((*[]uint32)(f), x, lowerIndex) }
func (f *freeIndices) pop() uint32   { return heapPop((*[]uint32)(f), lowerIndex) }
