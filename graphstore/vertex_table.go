package graphstore

import (
	"math/bits"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"gqlstream/ingest/event"
)

// vertexRecords returns the table of vertices. The columns of the store that have the type of the
// table's column are used without copies; names, roles, degrees and probabilities are converted.
func (s *Store) vertexRecords(columns []rowColumn) records {
	schema := schemaOf(columns)
	return func(yield func(arrow.Record) bool) {
		n := s.ids.len()
		for first := 0; first == 0 || first < n; first += chunkRowsMax {
			if !yield(s.vertexRecord(schema, vertexRange{first, min(chunkRowsMax, n-first)})) {
				return
			}
		}
	}
}

// vertexRange is n consecutive vertices.
type vertexRange struct{ first, n int }

// bitmap has a bit for each vertex of a range that has a value, as Arrow does.
type bitmap struct {
	bits  *memory.Buffer
	nulls int
}

// has reports whether the i-th vertex of the range has a value.
func (b bitmap) has(i int) bool { return b.bits.Bytes()[i/8]>>(i%8)&1 == 1 }

// bitmapOf returns the bitmap of the values that are not missing.
func bitmapOf[T fixed](r vertexRange, c *column[T], missing T) bitmap {
	data := make([]byte, (r.n+7)/8)
	for i, x := range c.data[r.first : r.first+r.n] {
		if x != missing {
			data[i/8] |= 1 << (i % 8)
		}
	}
	b := bitmap{memory.NewBufferBytes(data), r.n}
	for _, x := range data {
		b.nulls -= bits.OnesCount8(x)
	}
	return b
}

// arrayOf returns the elements of a column as an Arrow array over the column's memory. Elements
// that valid has no bit for are null.
func arrayOf[T fixed](r vertexRange, c *column[T], t arrow.DataType, valid bitmap) arrow.Array {
	width := t.(arrow.FixedWidthDataType).Bytes()
	var values *memory.Buffer
	if r.n > 0 {
		values = memory.NewBufferBytes(c.buf.Bytes()[r.first*width : (r.first+r.n)*width])
	}
	buffers := []*memory.Buffer{valid.bits, values}
	return array.MakeFromData(array.NewData(t, r.n, buffers, nil, valid.nulls, 0))
}

// vertexRecord returns the rows of a range of vertices.
func (s *Store) vertexRecord(schema *arrow.Schema, r vertexRange) arrow.Record {
	l, e := &s.labelling, &s.labelling.evidence
	labelled := bitmapOf(r, &l.classes, int32(event.NoClass))
	predicted := bitmapOf(r, &l.version, noVersion)
	observed := bitmapOf(r, &e.weights, 0)
	numbers, degrees := newColumn[Vertex](r.n), newColumn[float64](r.n)
	for i := range r.n {
		numbers.data[i] = Vertex(r.first + i)
		degrees.data[i] = s.edges.runs[r.first+i].degree
	}
	columns := make([]arrow.Array, schema.NumFields())
	for i, field := range schema.Fields() {
		t := field.Type
		switch field.Name {
		case "vertex":
			columns[i] = array.MakeFromData(numbers.array(t))
		case "id":
			columns[i] = s.ids.array(r)
		case "label":
			columns[i] = arrayOf(r, &l.classes, t, labelled)
		case "role":
			columns[i] = l.roleArray(r, labelled)
		case "version":
			columns[i] = arrayOf(r, &l.version, t, predicted)
		case "degree":
			columns[i] = array.MakeFromData(degrees.array(t))
		case "probabilities":
			columns[i] = l.probabilityArray(r, t, predicted)
		case "label_time":
			columns[i] = arrayOf(r, &l.times, t, labelled)
		case "weight":
			columns[i] = arrayOf(r, &e.weights, t, observed)
		case "epoch":
			columns[i] = arrayOf(r, &e.epochs, t, observed)
		case "prediction_time":
			columns[i] = arrayOf(r, &e.times, t, observed)
		case "prediction_changed":
			columns[i] = arrayOf(r, &e.changed, t, observed)
		case "observations":
			columns[i] = arrayOf(r, &e.observations, t, observed)
		default:
			panic("graphstore: no column " + field.Name)
		}
	}
	return array.NewRecord(schema, columns, int64(r.n))
}

// array returns the names of vertices, null for erased ones.
func (t *ids) array(r vertexRange) arrow.Array {
	names := array.NewStringBuilder(memory.DefaultAllocator)
	names.Reserve(r.n)
	for _, id := range t.list[r.first : r.first+r.n] {
		if id.erased {
			names.AppendNull()
		} else {
			names.Append(id.id.String())
		}
	}
	return stringsOf(names)
}

// roleArray returns the roles of labels as texts.
func (l *labelling) roleArray(r vertexRange, labelled bitmap) arrow.Array {
	roles := array.NewStringBuilder(memory.DefaultAllocator)
	roles.Reserve(r.n)
	for i, role := range l.roles.data[r.first : r.first+r.n] {
		if labelled.has(i) {
			roles.Append(event.Role(role).String())
		} else {
			roles.AppendNull()
		}
	}
	return stringsOf(roles)
}

// stringsOf returns the texts of a builder; see trimBitmap.
func stringsOf(builder *array.StringBuilder) arrow.Array {
	texts := builder.NewArray()
	trimBitmap(texts)
	return texts
}

// probabilityArray returns predictions as lists of probabilities.
func (l *labelling) probabilityArray(
	r vertexRange, t arrow.DataType, predicted bitmap,
) arrow.Array {
	k := l.config.Classes
	values := newColumn[float64](r.n * k)
	for i, unit := range l.units.data[r.first*k : (r.first+r.n)*k] {
		values.data[i] = float64(unit) / event.One
	}
	return array.MakeFromData(array.NewData(t, r.n, []*memory.Buffer{predicted.bits},
		[]arrow.ArrayData{values.array(arrow.PrimitiveTypes.Float64)}, predicted.nulls, 0))
}
