package graphstore

import (
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// lists hold the neighbours of consecutive vertices as Arrow list arrays: those of the i-th vertex
// are neighbors[offsets[i]:offsets[i+1]]. They never change once they are made, so the store, the
// checkpoint that is being written and an export share them.
type lists struct {
	offsets   column[int32]
	neighbors column[Vertex]
	weights   column[float64] // parallel to neighbors, or empty
	weighted  bool            // whether there are weights; without, all are one
}

// listCount returns how many lists the vertices of the graph have: each is for chunkRowsMax
// vertices, and the last for those that are left.
func (g *adjacency) listCount() int { return (len(g.runs) + chunkRowsMax - 1) / chunkRowsMax }

// runsOf returns the runs that the i-th lists are for, and the vertex of the first.
func (g *adjacency) runsOf(i int) (runs []run, first int) {
	first = i * chunkRowsMax
	return g.runs[first:min(len(g.runs), first+chunkRowsMax)], first
}

// isCompact reports whether the i-th lists equal the runs of their vertices.
func (g *adjacency) isCompact(i int) bool {
	if i >= len(g.compacted) {
		return false
	}
	l := &g.compacted[i]
	runs, _ := g.runsOf(i)
	return len(l.offsets.data) == len(runs)+1 && l.weighted == (g.heavy > 0) &&
		!slices.ContainsFunc(runs, func(r run) bool { return r.changed })
}

// copyLists copies the runs of the i-th lists, in the order that they have.
func (g *adjacency) copyLists(i int) lists {
	runs, first := g.runsOf(i)
	l := lists{offsets: newColumn[int32](len(runs) + 1), weighted: g.heavy > 0}
	end := int32(0)
	for j := range runs {
		end += int32(len(runs[j].neighbors))
		l.offsets.data[j+1] = end
	}
	l.neighbors = newColumn[Vertex](int(end))
	if l.weighted {
		l.weights = newColumn[float64](int(end))
	}
	for j := range runs {
		from := l.offsets.data[j]
		copy(l.neighbors.data[from:], runs[j].neighbors)
		if l.weighted {
			copy(l.weights.data[from:], g.weights[first+j])
		}
	}
	return l
}

// records returns the adjacency table: the lists of the last compaction, and copies of those whose
// runs have changed since.
func (g *adjacency) records(columns []rowColumn) records {
	schema := schemaOf(columns)
	return func(yield func(arrow.Record) bool) {
		if len(g.runs) == 0 {
			yield((&lists{offsets: newColumn[int32](1)}).record(schema, 0))
		}
		for i := range g.listCount() {
			var l lists
			if g.isCompact(i) {
				l = g.compacted[i]
			} else {
				l = g.copyLists(i)
			}
			if !yield(l.record(schema, i*chunkRowsMax)) {
				return
			}
		}
	}
}

// fileSize returns about how many bytes the adjacency table has, so that its encoding allocates
// them once.
func (g *adjacency) fileSize() int {
	entry := 4
	if g.heavy > 0 {
		entry += 8
	}
	return 2*g.edges*entry + 16*len(g.runs) + 1<<16
}

// record returns the lists as rows of the adjacency table. Only the column of vertices is new
// memory.
func (l *lists) record(schema *arrow.Schema, first int) arrow.Record {
	n := len(l.offsets.data) - 1
	vertices := newColumn[Vertex](n)
	for i := range vertices.data {
		vertices.data[i] = Vertex(first + i)
	}
	columns := []arrow.Array{
		array.MakeFromData(vertices.array(schema.Field(0).Type)),
		l.listArray(schema.Field(1).Type, l.neighbors.array),
		nil,
	}
	if weights := schema.Field(2).Type; l.weighted {
		columns[2] = l.listArray(weights, l.weights.array)
	} else {
		columns[2] = array.MakeArrayOfNull(memory.DefaultAllocator, weights, n)
	}
	record := array.NewRecord(schema, columns, int64(n))
	for _, c := range columns {
		c.Release()
	}
	return record
}

// listArray returns an array of lists over values, given as a function of their type.
func (l *lists) listArray(
	t arrow.DataType, values func(arrow.DataType) arrow.ArrayData,
) arrow.Array {
	elements := values(t.(*arrow.ListType).Elem())
	defer elements.Release()
	data := array.NewData(
		t, len(l.offsets.data)-1, []*memory.Buffer{nil, l.offsets.buf},
		[]arrow.ArrayData{elements}, 0, 0,
	)
	defer data.Release()
	return array.MakeFromData(data)
}
