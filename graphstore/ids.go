package graphstore

import (
	"slices"
	"strings"

	"gqlstream/ingest/event"
)

// ids maps identities to dense indices, both ways.
//
// Invariant: every identity that is not erased is found; free holds exactly the indices of erased
// ones, the smallest last; and nothing refers to an erased name.
type ids struct {
	numbers map[uint64]Vertex
	texts   map[string]Vertex
	list    []identity // by vertex
	free    []Vertex   // descending
}

// identity is the name of a vertex, or the mark that it was erased.
type identity struct {
	id     event.ID // with a copy of the name
	erased bool
}

// newIDs returns an empty table.
func newIDs() ids { return ids{numbers: map[uint64]Vertex{}, texts: map[string]Vertex{}} }

// Lookup returns the vertex that id names. It does not allocate.
func (t *ids) Lookup(id event.ID) (v Vertex, known bool) {
	if id.Name == "" {
		v, known = t.numbers[id.Number]
	} else {
		v, known = t.texts[id.Name]
	}
	return v, known
}

// add gives a new identity an index: the lowest erased one, else the next.
func (t *ids) add(id event.ID) (v Vertex) {
	if last := len(t.free) - 1; last >= 0 {
		v, t.free = t.free[last], t.free[:last]
	} else {
		v = t.append()
	}
	t.set(v, id)
	return v
}

// append adds an index without an identity.
func (t *ids) append() Vertex {
	t.list = append(t.list, identity{erased: true})
	return Vertex(len(t.list) - 1)
}

// set gives an index an identity. The name is copied, because that of an event belongs to its
// batch.
func (t *ids) set(v Vertex, id event.ID) {
	id.Name = strings.Clone(id.Name)
	if t.list[v] = (identity{id: id}); id.Name == "" {
		t.numbers[id.Number] = v
	} else {
		t.texts[id.Name] = v
	}
}

// erase deletes the identity of v. Its index is not used again before release.
func (t *ids) erase(v Vertex) {
	if id := t.list[v].id; id.Name == "" {
		delete(t.numbers, id.Number)
	} else {
		delete(t.texts, id.Name)
	}
	t.list[v] = identity{erased: true}
}

// release makes the indices of erased vertices, in ascending order, available for new ones.
func (t *ids) release(erased []Vertex) {
	before := len(t.free)
	t.free = append(t.free, erased...)
	for end := len(t.free) - 1; len(erased) > 0; end-- { // the smallest of both lists comes last
		if before > 0 && t.free[before-1] < erased[0] {
			before--
			t.free[end] = t.free[before]
		} else {
			t.free[end], erased = erased[0], erased[1:]
		}
	}
}

// Erased reports whether v was erased and its index not yet given to another.
func (t *ids) Erased(v Vertex) bool { return t.list[v].erased }

// ID returns the name of v, and the zero ID when v is erased, see Erased.
func (t *ids) ID(v Vertex) event.ID { return t.list[v].id }

// restore appends an identity in the form of String, or an erased one; restoreFree releases the
// erased ones later. If the identity exists already, it returns its index.
func (t *ids) restore(text string, live bool) Vertex {
	id := event.ParseID(text)
	if v, known := t.Lookup(id); live && known {
		return v
	}
	v := t.append()
	if live {
		t.set(v, id)
	}
	return v
}

// restoreFree releases the erased indices of a restored table.
func (t *ids) restoreFree() {
	for v := range t.list {
		if t.list[v].erased {
			t.free = append(t.free, Vertex(v))
		}
	}
	slices.Reverse(t.free)
}

// len returns the number of vertices, those erased included.
func (t *ids) len() int { return len(t.list) }

// names maps strings to indices in order of first mention, and back.
type names struct {
	names []string
	index map[string]uint32
}

// add gives a name the next index. It copies the name.
func (n *names) add(name string) {
	name = strings.Clone(name)
	n.index[name] = uint32(len(n.names))
	n.names = append(n.names, name)
}
