package diffusion

// A vertex is in a queue once, however often it is raised above the bar meanwhile. A list of
// flags by vertex would say so as well, eight times as large.

// bitmap is a set of vertices. At one bit a vertex it stays in the cache where
// the vectors do not, so it is looked at only after a cheaper test.
type bitmap []uint64

func (b bitmap) has(v Vertex) bool { return b[v>>6]&(1<<(v&63)) != 0 }

func (b bitmap) drop(v Vertex) { b[v>>6] &^= 1 << (v & 63) }

// add puts v in the set and reports whether it was absent.
func (b bitmap) add(v Vertex) bool {
	word, bit := &b[v>>6], uint64(1)<<(v&63)
	absent := *word&bit == 0
	*word |= bit
	return absent
}

// grow makes room for n vertices.
func (b *bitmap) grow(n int) {
	for len(*b) < (n+63)/64 {
		*b = append(*b, 0)
	}
}
