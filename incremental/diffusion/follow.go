package diffusion

import "gqlstream/graphstore"

// following detects that a structure has missed a delta of its graph. It compares two sums, which
// are exact in floats because weights are multiples of a power of two, and computes the residuals
// again if they differ. A missed delta that leaves both sums unchanged would go unnoticed, but the
// core misses none.
type following struct {
	degreeSum  float64 // at least the sum of d, exact
	stale      bool    // the graph may have moved since R was right
	touched    []Vertex
	touchedSet bitmap
}

// resetTouched clears the list of touched vertices. It compares the number of vertices and the
// sum of degrees with those seen before, to detect a missed delta.
func (t *following) resetTouched(view graphstore.View, delta *graphstore.Delta, seen int) {
	for _, v := range t.touched {
		t.touchedSet.drop(v)
	}
	t.touched = t.touched[:0]
	n, degreeSum := max(seen, view.Vertices()), t.degreeSum
	t.touchedSet.grow(n)
	if delta != nil {
		degreeSum += degreeChange(delta)
		t.stale = t.stale || int(delta.FirstVertex) != seen
	}
	degreeSum += float64(n - seen)
	t.degreeSum = view.WeightSum() + float64(n)
	t.stale = t.stale || degreeSum != t.degreeSum
}

// degreeChange returns by how much a delta moves the sum of all degrees; exact.
func degreeChange(delta *graphstore.Delta) float64 {
	sum := 0.0
	for i := range delta.Edges {
		sum += 2 * (delta.Edges[i].After - delta.Edges[i].Before)
	}
	return sum
}

func (t *following) touch(v Vertex) {
	if t.touchedSet.add(v) {
		t.touched = append(t.touched, v)
	}
}

// touchAll touches the first n vertices.
func (t *following) touchAll(n int) {
	for v := range n {
		t.touch(Vertex(v))
	}
}

// A vertex is in a queue once, for any number of times above the threshold. A list of flags by
// vertex would serve too, at eight times the size.

// bitmap is a set of vertices. At one bit a vertex it stays in the cache where
// the vectors do not, so it is looked at only after a cheaper test.
type bitmap []uint64

func (b bitmap) drop(v Vertex) { b[v>>6] &^= 1 << (v & 63) }

// add puts v in the set and reports whether it was absent.
func (b bitmap) add(v Vertex) bool {
	word, bit := &b[v>>6], uint64(1)<<(v&63)
	absent := *word&bit == 0
	*word |= bit
	return absent
}

// grow extends the lists to n vertices.
func (b *bitmap) grow(n int) {
	for len(*b) < (n+63)/64 {
		*b = append(*b, 0)
	}
}
