package graphstore

import (
	"fmt"
	"strings"

	"gqlstream/ingest/event"
)

// valueRow is an attribute's value within a row: a text for strings, a number for numbers and
// booleans.
type valueRow struct {
	Kind   event.ValueKind
	Text   nullable[string]
	Number nullable[float64]
}

// rowOf returns a value in the form that rows have.
func rowOf(value event.Value) valueRow {
	return valueRow{
		value.Kind,
		nullable[string]{value.Text, value.Kind == event.StringValue},
		nullable[float64]{
			value.Number,
			value.Kind == event.NumberValue || value.Kind == event.BoolValue,
		},
	}
}

// value returns the value of a row, with a copy of its text.
func (r *valueRow) value() event.Value {
	return event.Value{Kind: r.Kind, Text: strings.Clone(r.Text.Value), Number: r.Number.Value}
}

// attributeRow is one attribute of one vertex.
type attributeRow struct {
	Vertex Vertex
	Key    string
	valueRow
}

// rows returns attributes by key, then vertex.
func (a attributes) rows(yield func(attributeRow) bool) {
	for _, key := range a.AttributeKeys() {
		for v, x := range *a[key] {
			if x != noValue && !yield(attributeRow{Vertex(v), key, rowOf(x.Value())}) {
				return
			}
		}
	}
}

// load adds an attribute of one of n vertices.
func (a attributes) load(r *attributeRow, n int) error {
	if int(r.Vertex) >= n {
		return fmt.Errorf("attribute of vertex %d: %w", r.Vertex, errTable)
	}
	a.set(r.Vertex, r.Key, r.value())
	return nil
}
