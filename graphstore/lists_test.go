package graphstore

import (
	"reflect"
	"slices"
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
		sections = slices.DeleteFunc(sections, func(s Section) bool { return !s.Lasts() })
		before := encodeAll(t, sections)
		shared(t, s)
		for range 30 {
			h.batch(&b, 200)
			s.Apply(&b)
		}
		if len(before) != 2 || !reflect.DeepEqual(before, encodeAll(t, sections)) {
			t.Errorf("weighted %v: later events changed the tables of a checkpoint", weighted)
		}
		if err := s.edges.adjacency.check(); err != nil {
			t.Error(err)
		}
	}
}

func encodeAll(t *testing.T, sections []Section) (files [][]byte) {
	t.Helper()
	for _, section := range sections {
		data, err := section.Encode()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	return files
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
