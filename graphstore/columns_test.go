package graphstore

import (
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// An array over a column must be the store's own memory, with the values of the view.
func TestColumnsAreTheStoresOwnMemory(t *testing.T) {
	stream := eventtest.New(3, eventtest.Config{Classes: 3, Vertices: 40, Weighted: true})
	s, err := New(Config{Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		s.Apply(stream.Next())
	}
	w := s.View()
	data := func(t arrow.DataType, buf *memory.Buffer) arrow.ArrayData {
		return array.NewData(t, w.Vertices(), []*memory.Buffer{nil, buf}, nil, 0, 0)
	}
	class, role := array.NewInt32Data(
		data(arrow.PrimitiveTypes.Int32, s.labelling.classes.buf),
	), array.NewUint8Data(data(arrow.PrimitiveTypes.Uint8, s.labelling.roles.buf))
	defer class.Release()
	defer role.Release()
	if &class.Int32Values()[0] != &s.labelling.classes.data[0] ||
		&role.Uint8Values()[0] != &s.labelling.roles.data[0] {
		t.Error("a column is a copy")
	}
	for v := range Vertex(w.Vertices()) {
		if label := w.Label(v); event.Class(class.Value(int(v))) != label.Class ||
			event.Role(role.Value(int(v))) != label.Role {
			t.Errorf(
				"vertex %d: class %d and role %d, the view says %v", v, class.Value(int(v)),
				role.Value(int(v)), label,
			)
		}
	}
}

// bytes returns the memory that the column holds.
func (c *column[T]) bytes() int {
	if c.buf == nil {
		return 0
	}
	return c.buf.Cap()
}
