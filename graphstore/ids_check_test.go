package graphstore

import (
	"fmt"
	"slices"
)

// check finds every vertex by its identity, and counts the vertices.
func (t *ids) check() error {
	live := 0
	var gone []Vertex
	for v := range Vertex(len(t.list)) {
		if t.Erased(v) {
			gone = append(gone, v)
			continue
		}
		live++
		if found, ok := t.Lookup(t.ID(v)); !ok || found != v {
			return fmt.Errorf("vertex %d is not found by its identity %v", v, t.ID(v))
		}
	}
	if found := len(t.numbers) + len(t.texts); found != live {
		return fmt.Errorf("%d identities are found, want %d", found, live)
	}
	slices.Reverse(gone)
	if !slices.Equal(t.free, gone) {
		return fmt.Errorf("free indices %v, erased %v", t.free, gone)
	}
	return nil
}
