package graphstore

import (
	"bytes"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"

	"gqlstream/ingest/event"
)

// The adjacency table of a compacted store is the memory that the store reads neighbours from. What
// events of every kind do afterwards must not show in the tables of a checkpoint that is encoded
// later.
func TestACheckpointSharesTheCompactedNeighbours(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		s, h := newTestStore(t, Config{}), newHistory(5, 60, weighted)
		var b event.Batch
		for range 30 {
			h.batch(&b, 200)
			s.Apply(&b)
		}
		sections := s.Sections()
		for _, section := range sections {
			if section.Table != adjacencyTable {
				continue
			}
			before, err := section.Encode()
			if err != nil {
				t.Fatal(err)
			}
			shared(t, s)
			for range 30 {
				h.batch(&b, 200)
				s.Apply(&b)
			}
			after, err := section.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, after) {
				t.Errorf("weighted %v: later events changed the table of a checkpoint", weighted)
			}
			if err := s.edges.adjacency.check(); err != nil {
				t.Error(err)
			}
		}
	}
}

// shared fails unless the records of the adjacency table have the memory of the store's neighbours.
func shared(t *testing.T, s *Store) {
	t.Helper()
	record := s.View().Records(adjacencyTable)[0]
	defer record.Release()
	lists := record.Column(1).(*array.List)
	values := lists.ListValues().(*array.Uint32).Uint32Values()
	for v := range Vertex(s.View().Vertices()) {
		from, _ := lists.ValueOffsets(int(v))
		neighbors := s.View().Neighbors(v)
		if len(neighbors) == 0 {
			continue
		}
		was := neighbors[0]
		neighbors[0]++
		if values[from] != uint32(was+1) {
			t.Fatalf("the neighbours of vertex %d are a copy", v)
		}
		neighbors[0] = was
	}
}
