package graphstore

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unique"

	"gqlstream/ingest/event"
)

// attributes holds one column of values for each key. Equal values share one copy in memory.
type attributes map[string]*attributeColumn

// attributeColumn holds the values of a key by vertex: the zero handle is null. It may be shorter
// than there are vertices, because it grows only when a vertex gets a value.
type attributeColumn []unique.Handle[event.Value]

// noValue is the handle of null.
var noValue unique.Handle[event.Value]

// Attribute returns an attribute of v, null when it has none of that key.
func (a attributes) Attribute(v Vertex, key string) event.Value { return a[key].at(v) }

// at returns the value of v, null for none.
func (c *attributeColumn) at(v Vertex) event.Value {
	if c != nil && int(v) < len(*c) && (*c)[v] != noValue {
		return (*c)[v].Value()
	}
	return event.Value{}
}

// Numbers visits the vertices that have a number or a boolean as an attribute, in order.
func (a attributes) Numbers(key string) iter.Seq2[Vertex, float64] {
	return func(yield func(Vertex, float64) bool) {
		column := a[key]
		for v := Vertex(0); column != nil && int(v) < len(*column); v++ {
			x := column.at(v)
			if (x.Kind == event.NumberValue || x.Kind == event.BoolValue) && !yield(v, x.Number) {
				return
			}
		}
	}
}

// AttributeKeys returns the keys of the attributes, sorted.
func (a attributes) AttributeKeys() []string { return slices.Sorted(maps.Keys(a)) }

// list returns the values that v has of some keys, in the memory of values.
func (a attributes) list(v Vertex, keys []string, values []event.Value) []event.Value {
	values = values[:0]
	for _, key := range keys {
		values = append(values, a.Attribute(v, key))
	}
	return values
}

// set gives v a value of a key, null for none, and returns the previous one. A new key is copied.
// Minus zero becomes zero, so that equal numbers have one form whatever came earlier.
func (a attributes) set(v Vertex, key string, value event.Value) (before event.Value) {
	c := a[key]
	if c == nil {
		c = new(attributeColumn)
		a[strings.Clone(key)] = c
	}
	before = c.at(v)
	handle := noValue
	if value.Kind != event.NullValue {
		value.Number += 0           // minus zero becomes zero
		handle = unique.Make(value) // with a copy of the text
	}
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

// compact drops the keys that no vertex has.
func (a attributes) compact() {
	for key, c := range a {
		n := len(*c)
		for n > 0 && (*c)[n-1] == noValue {
			n--
		}
		if *c = (*c)[:n]; n == 0 {
			delete(a, key)
		}
	}
}
