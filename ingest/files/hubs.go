package files

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gqlstream/ingest/event"
)

const (
	// hubCounters is the number of vertices with counted edges: a count is too small by at most one
	// in so many ends (Misra and Gries, 1982).
	hubCounters = 256
	// hubRowsAll rows are all counted, and of the rows after them one in hubRowsSkip.
	hubRowsAll  = 1 << 14
	hubRowsSkip = 16
	// A vertex is named if it has one in hubShare edges, or one in hubShareStrange if the other
	// files do not have it and have at least half of the vertices.
	hubShare, hubShareStrange = 10, 50
	hubEdgesMin               = 50
	hubsShown                 = 3
)

// hubs finds the vertices with the most edges, in bounded memory: an id that stands for nobody,
// such as a word for a missing value, is one.
type hubs struct {
	rows   int
	counts map[uint64]hub
}

// hub is a vertex with many edges.
type hub struct {
	id    event.ID
	count int
}

// see counts an edge.
func (h *hubs) see(a, b event.ID, keyA, keyB uint64) {
	weight := 1
	if h.rows++; h.rows > hubRowsAll {
		if weight = hubRowsSkip; h.rows%hubRowsSkip != 0 {
			return
		}
	}
	h.add(a, keyA, weight)
	h.add(b, keyB, weight)
}

func (h *hubs) add(id event.ID, key uint64, weight int) {
	x, known := h.counts[key]
	if known || len(h.counts) < hubCounters {
		if x.count += weight; !known {
			x.id = event.ID{Number: id.Number, Name: strings.Clone(id.Name)}
		}
		h.counts[key] = x
		return
	}
	for other, x := range h.counts {
		if x.count -= weight; x.count <= 0 {
			delete(h.counts, other)
		} else {
			h.counts[other] = x
		}
	}
}

// hubWarnings names vertices that have so many edges that they may stand for nobody.
func (s *survey) hubWarnings() (all []string) {
	vertices, others := s.meets(hasEdge, hasPrediction|isMember)
	for _, key := range slices.SortedFunc(maps.Keys(s.hubs.counts), func(a, b uint64) int {
		x, y := s.hubs.counts[a], s.hubs.counts[b]
		if x.count != y.count {
			return y.count - x.count
		}
		return strings.Compare(x.id.String(), y.id.String())
	}) {
		h := s.hubs.counts[key]
		share := hubShare
		known := s.vertices.keeps(key)
		strange := known && 2*others >= vertices &&
			s.vertices.of[key].last&(hasPrediction|isMember|hasLabel|hasRow) == 0
		if strange {
			share = hubShareStrange
		}
		if h.count < hubEdgesMin || share*h.count < s.hubs.rows || len(all) == hubsShown {
			break
		}
		if others > 0 && known && !strange || s.doubtful[h.id.Name] > 0 {
			continue
		}
		all = append(all, fmt.Sprintf("about %s of %s rows of edges or posts name the vertex %q"+
			"%s: if it stands for nobody, leave these rows out; otherwise it connects them all "+
			"as a hub",
			grouped(h.count), grouped(s.hubs.rows), h.id.String(),
			map[bool]string{true: ", which no other file has", false: ""}[strange]))
	}
	return all
}
