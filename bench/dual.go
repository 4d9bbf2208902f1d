package bench

import (
	"context"
	"fmt"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
)

const (
	labelledShare   = 0.1
	communitiesFew  = 5
	communitiesMany = 100_000
	membersEach     = 20 // of a community
	readsEach       = 5  // communities read after a batch
)

// readers are communities whose sums are read.
type readers struct {
	members [][]graphstore.Vertex
	ones    []uint32
	sum     []float64
}

func newReaders(g *Graph, communities, functions int) *readers {
	r := &readers{members: make([][]graphstore.Vertex, communities), ones: make([]uint32, membersEach), sum: make([]float64, functions)}
	for i := range r.ones {
		r.ones[i] = 1
	}
	for c := range r.members {
		r.members[c] = make([]graphstore.Vertex, membersEach)
		for i := range r.members[c] {
			r.members[c][i] = graphstore.Vertex(g.rand.IntN(g.n))
		}
	}
	return r
}

// read reads A1 = sum m y of some communities.
func (r *readers) read(d *diffusion.Dual, which []int) {
	for _, c := range which {
		clear(r.sum)
		d.AddSum(r.sum, r.members[c], r.ones)
	}
}

// newDual returns a dual of so many functions on a tenth of the vertices, solved.
func newDual(g *Graph, functions int) (*diffusion.Dual, error) {
	d, err := diffusion.NewDual(diffusion.DualConfig{Alpha: alpha, Functions: functions})
	if err != nil {
		return nil, err
	}
	var values []diffusion.ValueChange
	for v := range g.n {
		if g.rand.Float64() < labelledShare {
			for i := range functions {
				values = append(values, diffusion.ValueChange{V: graphstore.Vertex(v), Function: i, Change: g.rand.Float64()})
			}
		}
	}
	d.Solve(g.store.View(), values, diffusion.DualToleranceDefault/3)
	return d, nil
}

// measureDual measures the store and the dual together on one core: four functions
// are K = 2 classes through their own predictions, eight through own predictions
// times those of the neighbours. Batches with few and with many communities take
// turns.
func measureDual(ctx context.Context, w *World) ([]Row, error) {
	g, err := w.shared()
	if err != nil {
		return nil, err
	}
	defer lockThread()()
	four, err := newDual(g, 4)
	if err != nil {
		return nil, err
	}
	eight, err := newDual(g, 8)
	if err != nil {
		return nil, err
	}
	sides := [2]*readers{newReaders(g, communitiesFew, 4), newReaders(g, communitiesMany, 4)}
	watches := [2]*stopwatch{newStopwatch(), newStopwatch()}
	wide := newStopwatch()
	var spent [2][]float64
	var wider []float64
	rounds, batches, warm := w.pick(21, 7), w.pick(4, 3), warmEvents/updateBatch
	which := make([]int, readsEach)
	for round := -warm; round < rounds; round++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for range batches {
			for side, r := range sides {
				for i := range which {
					which[i] = g.rand.IntN(len(r.members))
				}
				g.draw(updateBatch)
				var view graphstore.View
				var delta *graphstore.Delta
				watches[side].time(func() {
					view, delta = g.apply()
					four.Update(view, delta, nil)
					r.read(four, which)
				})
				wide.time(func() { eight.Update(view, delta, nil) })
			}
			if round < 0 {
				break
			}
		}
		each := [2]float64{micros(watches[0].take(), batches*updateBatch), micros(watches[1].take(), batches*updateBatch)}
		last := micros(wide.take(), 2*batches*updateBatch)
		if round >= 0 {
			spent[0], spent[1], wider = append(spent[0], each[0]), append(spent[1], each[1]), append(wider, last)
		}
	}
	few, many := 1e6/median(spent[0]), 1e6/median(spent[1])
	note := fmt.Sprintf("store and dual, K = 2, 4 functions, batch %d, certificate %.2g; %d communities of %d read after a batch",
		updateBatch, four.Certificate(), readsEach, membersEach)
	return []Row{
		Row{
			Name: "dual", Value: many, Unit: "events/s cpu", Reference: "none found",
			Note: fmt.Sprintf("%d communities; %s", communitiesMany, note),
		}.atLeast(100_000),
		Row{
			Name: "dual/few", Value: few, Unit: "events/s cpu", Reference: "none found",
			Note: fmt.Sprintf("%d communities; %s", communitiesFew, note),
		}.atLeast(100_000),
		Row{
			Name: "dual/flat", Value: many / few, Unit: "x", Reference: fmt.Sprintf("%d communities against %d", communitiesMany, communitiesFew),
			Note: "1 is flat",
		}.atLeast(0.8),
		{Name: "dual/eight", Value: median(wider), Unit: "us cpu/event", Note: "8 functions, without the store"},
	}, nil
}
