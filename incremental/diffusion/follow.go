package diffusion

import (
	"fmt"
	"math"

	"gqlstream/graphstore"
)

// following detects that a structure has missed a delta of the graph that it follows. Nobody tells
// it: it compares two sums instead, which are exact in floats because weights are multiples of a
// power of two, and computes its residuals anew where they differ. A missed delta that leaves both
// sums as they were would go unseen; the core misses none, and Check finds it.
type following struct {
	degreeSum  float64 // at least the sum of d, exact
	stale      bool    // the graph may have moved since R was right
	touched    []Vertex
	touchedSet bitmap
}

// follow forgets what was touched and compares the sums of vertices, of which so many were
// seen before, and of degrees, to see whether a delta was missed.
func (t *following) follow(view graphstore.View, delta *graphstore.Delta, seen int) {
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

// members is the source of a field or of layers.
type members struct {
	source    []float64 // n: m
	sourceSum float64   // M
	sources   int       // vertices with a source
}

// changeSource makes one change and returns the multiplicity before and after. It panics if
// that would become negative or is not a number.
func (m *members) changeSource(c SourceChange) (before, after float64) {
	before = m.source[c.V]
	after = before + c.Change
	if !(after >= 0) || math.IsInf(after, 1) {
		panic(fmt.Sprintf("diffusion: multiplicity of vertex %d would be %v", c.V, after))
	}
	m.source[c.V] = after
	m.sourceSum += c.Change
	switch {
	case before == 0 && after != 0:
		m.sources++
	case before != 0 && after == 0:
		m.sources--
	}
	return before, after
}
