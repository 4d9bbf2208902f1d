package graphstore

import (
	"iter"
	"slices"
	"strings"
	"unique"

	"gqlstream/ingest/event"
)

// attributes holds one column of values for each key. Equal values are one in memory.
type attributes struct {
	keys    []string
	index   map[string]int
	columns [][]unique.Handle[event.Value] // by key: the zero handle is null; may be shorter than there are vertices
}

// newAttributes returns attributes without keys.
func newAttributes() attributes { return attributes{index: map[string]int{}} }

// noValue is the handle of null.
var noValue unique.Handle[event.Value]

// Attribute returns an attribute of v, null when it has none of that key.
func (a *attributes) Attribute(v Vertex, key string) event.Value {
	i, ok := a.index[key]
	if !ok {
		return event.Value{}
	}
	return a.at(v, i)
}

// at returns the value that v has of a key by its column, null for none. A column may be
// shorter than there are vertices, because it grows only when a vertex gets a value.
func (a *attributes) at(v Vertex, key int) event.Value {
	if column := a.columns[key]; int(v) < len(column) && column[v] != noValue {
		return column[v].Value()
	}
	return event.Value{}
}

// Numbers visits the vertices that have a number or a boolean as an attribute, in order.
func (a *attributes) Numbers(key string) iter.Seq2[Vertex, float64] {
	return func(yield func(Vertex, float64) bool) {
		i, ok := a.index[key]
		if !ok {
			return
		}
		for v := range Vertex(len(a.columns[i])) {
			x := a.at(v, i)
			if (x.Kind == event.NumberValue || x.Kind == event.BoolValue) && !yield(v, x.Number) {
				return
			}
		}
	}
}

// list returns the values that v has of some keys, in the memory of values.
func (a *attributes) list(v Vertex, keys []string, values []event.Value) []event.Value {
	values = values[:0]
	for _, key := range keys {
		values = append(values, a.Attribute(v, key))
	}
	return values
}

// addKey returns the column of a key, new if need be. It keeps a copy of key.
func (a *attributes) addKey(key string) int {
	if i, ok := a.index[key]; ok {
		return i
	}
	key = strings.Clone(key)
	i := len(a.keys)
	a.keys = append(a.keys, key)
	a.index[key] = i
	a.columns = append(a.columns, nil)
	return i
}

// set gives v a value of a key, null for none, and returns the one before. There is one zero:
// which of two equal numbers stands for both must not depend on what came earlier.
func (a *attributes) set(v Vertex, key int, value event.Value) (before event.Value) {
	before = a.at(v, key)
	handle := noValue
	if value.Kind != event.NullValue {
		value.Number += 0           // minus zero becomes zero
		handle = unique.Make(value) // with a copy of the text
	}
	c := &a.columns[key]
	if n := len(*c); int(v) >= n {
		if handle == noValue {
			return before
		}
		*c = slices.Grow(*c, int(v)+1-n)[:v+1]
		clear((*c)[n:])
	}
	(*c)[v] = handle
	return before
}

// compact sorts the keys, and drops those that no vertex has.
func (a *attributes) compact() {
	next := newAttributes()
	for _, key := range slices.Sorted(slices.Values(a.keys)) {
		column := a.columns[a.index[key]]
		n := len(column)
		for n > 0 && column[n-1] == noValue {
			n--
		}
		if n > 0 {
			next.columns[next.addKey(key)] = column[:n]
		}
	}
	*a = next
}
