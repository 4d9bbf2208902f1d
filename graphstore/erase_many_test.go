package graphstore

import (
	"slices"
	"testing"
	"time"
)

// Erased indices must be assigned again, the smallest first. The time for each erased vertex must
// not grow with the number of vertices that a step erases.
func TestErasedIndicesAreSorted(t *testing.T) {
	var table ids
	for _, erased := range [][]Vertex{{3, 7}, {}, {1, 5, 9}, {4}, {0, 2}} {
		table.release(erased)
	}
	if want := []Vertex{9, 7, 5, 4, 3, 2, 1, 0}; !slices.Equal(table.free, want) {
		t.Errorf("free are %v, want %v", table.free, want)
	}
	many := make([]Vertex, 1_000_000)
	for v := range many {
		many[v] = Vertex(10 + v)
	}
	begun := time.Now()
	table.release(many)
	if took := time.Since(begun); took > time.Second || table.free[0] != 1_000_009 ||
		table.free[len(many)] != 9 {
		t.Errorf("a million took %v; the largest is %d", took, table.free[0])
	}
}
