package diffusion

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/parallel"
	"gqlstream/ingest/event"
)

// Relaxation solves for functions as a Dual does, but in small parts of a pass over the graph, for
// a caller that needs their sums over communities once and can wait. The graph may change
// meanwhile. Each part reads the present graph, so the values belong to the graph of the last
// passes. For this reason the number of passes is fixed: residuals near a new edge are large and
// decide nothing. A relaxation stores only the values, 8 bytes a function and vertex.
type Relaxation struct {
	blocks []block
	next   int // next vertex
	left   int // passes, this one included
}

// NewRelaxation returns one of several functions, a multiple of lanes, that are zero but at these
// vertices, which ascend; their values there are rows of f. It makes as many passes as take the
// error of a value below the tolerance on graphs that mix well; on others that error is at most
// about the root of it, see block.
func NewRelaxation(config Config, at []Vertex, f []float64) *Relaxation {
	x, peak := &Relaxation{blocks: make([]block, config.Functions/lanes)}, 0.0
	for i := range x.blocks {
		b := newBlock(1 - config.Alpha)
		b.at = slices.Clone(at)
		for j := range at {
			b.f = append(b.f, lane(f[j*config.Functions+i*lanes:]))
		}
		x.blocks[i] = b
	}
	for _, size := range f {
		peak = max(peak, math.Abs(size))
	}
	keep := 1 - config.Alpha
	digits := math.Log(config.Tolerance/max(peak, config.Tolerance)) / math.Log(overshoot(keep))
	x.left = min(firstPasses+int(math.Ceil(digits)), passesMax(keep))
	return x
}

// firstPasses are needed before passes leave no more than overshoot of the error.
const firstPasses = 2

// Relax continues until it has visited this many neighbours, counting each once for a block and a
// vertex as vertexCost of them. It returns how many it has visited, and whether all passes are
// done.
func (x *Relaxation) Relax(view graphstore.View, visits float64) (visited float64, done bool) {
	n := view.Vertices()
	for i := range x.blocks {
		x.blocks[i].y = lengthen(x.blocks[i].y, n)
	}
	for visited < visits && x.left > 0 {
		first := x.next
		for ; x.next < n && visited < visits; x.next++ {
			visited += float64(len(x.blocks) * (vertexCost + len(view.Neighbors(Vertex(x.next)))))
		}
		parallel.Each(len(x.blocks), func(i, _ int) { x.blocks[i].relax(view, first, x.next) })
		if x.next == n {
			x.next, x.left = 0, x.left-1
		}
	}
	return visited, x.left == 0
}

// Forget has the functions be zero at a vertex, and their values until the next step there.
func (x *Relaxation) Forget(v Vertex) {
	for _, b := range x.blocks {
		if i, is := slices.BinarySearch(b.at, v); is {
			b.f[i] = lane{}
		}
		if int(v) < len(b.y) {
			b.y[v] = lane{}
		}
	}
}

// Labelled returns the share of the functions' initial vertices that have a label now.
func (x *Relaxation) Labelled(view graphstore.View) float64 {
	at, n := x.blocks[0].at, 0
	for _, v := range at {
		if view.Label(v).Class != event.NoClass {
			n++
		}
	}
	return float64(n) / float64(len(at))
}

// Sum returns for every function the sum of its values over the sources of a community.
func (x *Relaxation) Sum(id graphstore.Community, view graphstore.View) []float64 {
	sums := make([]float64, len(x.blocks)*lanes)
	view.ForMembers(id, func(v Vertex, multiplicity uint32) {
		if view.Label(v).Class != event.NoClass {
			return
		}
		for i := range x.blocks {
			for j, y := range x.blocks[i].y[v] {
				sums[i*lanes+j] += float64(float64(multiplicity) * y)
			}
		}
	})
	return sums
}

// RelaxationState is a part of a relaxation, as a row of a table: values of a block at the next
// vertices. The first row of a block also has the values of the block as a whole, and the first row
// of all those of the relaxation.
type RelaxationState struct {
	Block     uint32
	Next      Vertex
	Left      uint32
	Valued    []Vertex  // vertices with a function
	Functions []float64 // lanes of each of these
	Y         []float64 // lanes of each vertex
}

// State returns the parts of a relaxation, none of nil. They are copies.
func (x *Relaxation) State() (parts []RelaxationState) {
	if x == nil {
		return nil
	}
	for i := range x.blocks {
		b := &x.blocks[i]
		part := RelaxationState{
			Block:     uint32(i),
			Next:      Vertex(x.next),
			Left:      uint32(x.left),
			Valued:    b.at,
			Functions: flat(b.f),
		}
		for y := range slices.Chunk(b.y, partNumbers/lanes) {
			part.Y = flat(y)
			parts = append(parts, part)
			part = RelaxationState{Block: uint32(i)}
		}
	}
	return parts
}

// RestoreRelaxation makes a relaxation from the parts of its state and the view of its graph at
// that time; nil without parts.
func RestoreRelaxation(
	alpha float64,
	view graphstore.View,
	parts []RelaxationState,
) (*Relaxation, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	first, n := parts[0], view.Vertices()
	x := &Relaxation{next: int(first.Next), left: int(first.Left)}
	for _, p := range parts {
		if int(p.Block) == len(x.blocks) {
			x.blocks = append(x.blocks, newBlock(1-alpha))
		}
		if int(p.Block) != len(x.blocks)-1 {
			return nil, errors.New("restore relaxation: blocks are not in order")
		}
		b := &x.blocks[p.Block]
		b.at = append(b.at, p.Valued...)
		b.f = appendLanes(b.f, p.Functions)
		b.y = appendLanes(b.y, p.Y)
	}
	for _, b := range x.blocks {
		if len(b.y) != len(x.blocks[0].y) || len(b.y) > n || x.next > len(b.y) ||
			len(b.f) != len(b.at) ||
			!slices.IsSorted(b.at) {
			return nil, fmt.Errorf("restore relaxation: %d values and %d functions at "+
				"%d vertices do not fit a graph of %d", len(b.y), len(b.f), len(b.at), n)
		}
	}
	return x, nil
}

func flat(list []lane) []float64 {
	numbers := make([]float64, 0, len(list)*lanes)
	for i := range list {
		numbers = append(numbers, list[i][:]...)
	}
	return numbers
}

func appendLanes(dst []lane, numbers []float64) []lane {
	for part := range slices.Chunk(numbers, lanes) {
		dst = append(dst, lane{})
		copy(dst[len(dst)-1][:], part)
	}
	return dst
}
