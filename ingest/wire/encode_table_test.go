package wire

import (
	"errors"
	"fmt"
	"testing"

	"gqlstream/ingest/event"
)

// encodeTable encodes like EncodeArrow, but writes vertex attributes as columns, as producers do.
func encodeTable(kind event.Kind, b *event.Batch, from, to int) ([]byte, error) {
	if kind != event.KindVertex {
		return EncodeArrow(kind, b, from, to)
	}
	e := arrowEncoder{cells: make([]Cell, to-from)}
	for i := range fields[kind] {
		s := &fields[kind][i]
		if s.field == fieldAttributes {
			if err := e.attributes(b.Vertices[from:to]); err != nil {
				return nil, err
			}
			continue
		}
		for j := range e.cells {
			e.cells[j] = Cell{}
			s.get(s.value(b, from+j), &e.cells[j])
		}
		e.add(s.name)
	}
	return e.encode()
}

// errNotTable is the error of attributes that a table cannot say.
var errNotTable = errors.New("a table cannot say it, send JSON")

// attributes adds a column for each attribute, in the order of first mention.
func (e *arrowEncoder) attributes(events []event.Vertex) error {
	var keys []string
	columns, kinds := map[string][]Cell{}, map[string]event.ValueKind{}
	for i := range events {
		for _, a := range events[i].Attributes {
			if columns[a.Key] == nil {
				keys = append(keys, a.Key)
				columns[a.Key], kinds[a.Key] = make([]Cell, len(events)), a.Value.Kind
			}
			switch at := findField(event.KindVertex, a.Key); {
			case at >= 0 && fields[event.KindVertex][at].field != fieldAttributes:
				return fmt.Errorf("attribute %q, a field: %w", a.Key, errNotTable)
			case a.Value.Kind == event.NullValue:
				return fmt.Errorf("attribute %q is null: %w", a.Key, errNotTable)
			case a.Value.Kind != kinds[a.Key]:
				return fmt.Errorf("attribute %q has two types: %w", a.Key, errNotTable)
			case len(keys) > event.AttributesPerEventMax:
				return fmt.Errorf("%d attributes: %w", len(keys), errNotTable)
			}
			columns[a.Key][i] = valueCell(a.Value)
		}
	}
	for _, key := range keys {
		e.cells = columns[key]
		e.add(key)
	}
	return nil
}

// Events that Arrow cannot encode must go as lines of JSON, all others as Arrow.
func TestEncodeChoosesTheForm(t *testing.T) {
	attribute := event.Attribute{Key: "age", Value: event.Value{Kind: event.NumberValue, Number: 3}}
	b := event.Batch{
		Edges: []event.Edge{{Src: event.NumberID(1), Dst: event.NumberID(2), Weight: 1}},
		Vertices: []event.Vertex{
			{Vertex: event.NumberID(1)},
			{Vertex: event.NumberID(2), Attributes: []event.Attribute{attribute}},
		},
	}
	for _, c := range []struct {
		kind     event.Kind
		from, to int
		form     string
	}{
		{event.KindEdge, 0, 1, Arrow},
		{event.KindVertex, 0, 1, Arrow},
		{event.KindVertex, 0, 2, NDJSON},
	} {
		payload, form := Encode(c.kind, &b, c.from, c.to)
		if form != c.form {
			t.Errorf("%v events %d to %d go as %s", c.kind, c.from, c.to, form)
		}
		var got event.Batch
		mustDecode(
			t, newDecoder(t, 2), Message{Kind: c.kind, ContentType: form, Payload: payload}, &got,
		)
		if got.Events() != c.to-c.from {
			t.Errorf("%d events came back of %d", got.Events(), c.to-c.from)
		}
	}
}
