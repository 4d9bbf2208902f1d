package graphstore

import (
	"iter"
	"slices"
	"strings"

	"gqlstream/ingest/event"
)

// attributes holds one column of interned values for each key.
type attributes struct {
	allocator Allocator
	keys      []string
	index     map[string]int
	columns   []column[uint32] // by key: value index plus one, 0 is null; may be shorter than n
	values    []event.Value
	uses      []uint32 // by value
	byValue   map[event.Value]uint32
	free      freeIndices // unused values, lowest on top
}

// newAttributes returns attributes without keys.
func newAttributes(a Allocator) attributes {
	return attributes{allocator: a, index: map[string]int{}, byValue: map[event.Value]uint32{}}
}

func (a *attributes) release() {
	for i := range a.columns {
		a.columns[i].release()
	}
}

// value returns the value that v has of a key by its name, null for none.
func (a *attributes) value(v Vertex, key string) event.Value {
	i, ok := a.index[key]
	if !ok {
		return event.Value{}
	}
	return a.at(v, i)
}

// at returns the value that v has of a key by its column, null for none. A column may be
// shorter than there are vertices, because it grows only when a vertex gets a value.
func (a *attributes) at(v Vertex, key int) event.Value {
	if data := a.columns[key].data; int(v) < len(data) && data[v] != 0 {
		return a.values[data[v]-1]
	}
	return event.Value{}
}

// numbers visits the vertices that have a number or a boolean of a key, in order.
func (a *attributes) numbers(key string) iter.Seq2[Vertex, float64] {
	return func(yield func(Vertex, float64) bool) {
		i, ok := a.index[key]
		if !ok {
			return
		}
		for v := range Vertex(len(a.columns[i].data)) {
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
		values = append(values, a.value(v, key))
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
	a.columns = append(a.columns, newColumn[uint32](a.allocator))
	return i
}

// set gives v a value of a key, null for none, and returns the one before.
func (a *attributes) set(v Vertex, key int, value event.Value) (before event.Value) {
	c := &a.columns[key]
	if int(v) >= len(c.data) {
		if value.Kind == event.NullValue {
			return before
		}
		c.resize(int(v) + 1)
	}
	was := c.data[v]
	c.data[v] = a.use(value)
	if was != 0 {
		before = a.values[was-1]
		a.drop(was - 1)
	}
	return before
}

// use counts one more use of value and returns its index plus one, 0 for null.
func (a *attributes) use(value event.Value) uint32 {
	if value.Kind == event.NullValue {
		return 0
	}
	if i, ok := a.byValue[value]; ok {
		a.uses[i]++
		return i + 1
	}
	value.Text = strings.Clone(value.Text)
	var i uint32
	if len(a.free) > 0 {
		i = a.free.pop()
		a.values[i], a.uses[i] = value, 1
	} else {
		i = uint32(len(a.values))
		a.values, a.uses = append(a.values, value), append(a.uses, 1)
	}
	a.byValue[value] = i
	return i + 1
}

// drop counts one use less and forgets a value without any.
func (a *attributes) drop(i uint32) {
	if a.uses[i]--; a.uses[i] == 0 {
		delete(a.byValue, a.values[i])
		a.values[i] = event.Value{}
		a.free.push(i)
	}
}

// compact sorts the keys, drops those that no vertex has, and numbers the values
// in order of first use.
func (a *attributes) compact() {
	next := newAttributes(a.allocator)
	for _, key := range slices.Sorted(slices.Values(a.keys)) {
		old := &a.columns[a.index[key]]
		n := len(old.data)
		for n > 0 && old.data[n-1] == 0 {
			n--
		}
		if n == 0 {
			continue
		}
		column := next.addKey(key)
		next.columns[column].reserve(n)
		for v := range Vertex(n) {
			if x := old.data[v]; x != 0 {
				next.set(v, column, a.values[x-1])
			}
		}
	}
	a.release()
	*a = next
}
