package graphstore

import (
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

func newAttributes(a Allocator) attributes {
	return attributes{allocator: a, index: map[string]int{}, byValue: map[event.Value]uint32{}}
}

func (a *attributes) release() {
	for i := range a.columns {
		a.columns[i].release()
	}
}

func (a *attributes) value(v Vertex, key string) event.Value {
	i, ok := a.index[key]
	if !ok {
		return event.Value{}
	}
	return a.at(v, i)
}

func (a *attributes) at(v Vertex, key int) event.Value {
	if data := a.columns[key].data; int(v) < len(data) && data[v] != 0 {
		return a.values[data[v]-1]
	}
	return event.Value{}
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

// set gives v a value of a key, null for none.
func (a *attributes) set(v Vertex, key int, value event.Value) {
	c := &a.columns[key]
	if int(v) >= len(c.data) {
		if value.Kind == event.NullValue {
			return
		}
		c.resize(int(v) + 1)
	}
	before := c.data[v]
	c.data[v] = a.use(value)
	if before != 0 {
		a.drop(before - 1)
	}
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
