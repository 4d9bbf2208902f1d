package bench

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
)

// The goal for memory is one for this many edges.
const (
	scaleEdges       = 100_000_000
	scaleCommunities = 10
	residentMax      = 6e9
)

// measureScale grows a whole core, with predictions everywhere, labels and ten
// communities, and says what it takes: the most memory at any moment, from an
// empty core to after a vacuum, the time to get there, and the cost of an event
// then.
func measureScale(ctx context.Context, w *World) ([]Row, error) {
	config := incremental.Config{Classes: 2, VacuumEvery: -1}
	for c := range scaleCommunities {
		config.Communities = append(config.Communities, graphstore.Rule{Name: fmt.Sprint("group", c)})
	}
	debug.FreeOSMemory()
	if err := resetPeak(); err != nil {
		return nil, err
	}
	begun := time.Now()
	core, g, err := w.grownCore(ctx, config, w.Edges)
	if err != nil {
		return nil, err
	}
	defer core.Close()
	grown := time.Since(begun).Seconds()
	events, emissions, wall := streamInto(core, g, w.pick(50, 10))
	w.SayMemory("%d events in %d batches", events, events/updateBatch)
	vacuum := time.Now()
	core.Step(&event.Batch{First: core.Position() + 1, Last: core.Position() + 1, Checkpoint: true})
	paused := time.Since(vacuum).Seconds()
	peak, err := peakResident()
	if err != nil {
		return nil, err
	}
	edges := core.View().Edges()
	resident := Row{
		Name: "scale", Value: peak / 1e9, Unit: "GB resident", Reference: "Memgraph's sizing rule: 154 B an edge",
		Note: fmt.Sprintf("at most, from nothing to after a vacuum: %d vertices with predictions, %d edges, %d communities of %d; %.1f B an edge",
			g.n, edges, scaleCommunities, restartMembers, peak/float64(edges)),
	}.atMost(residentMax / 1e9)
	if edges < scaleEdges {
		resident.Met = nil // the goal is that of a larger graph
	}
	return []Row{
		resident,
		{Name: "scale/grow", Value: float64(edges) / grown, Unit: "edges/s wall", Note: "from nothing, vacuum included"},
		{
			Name: "scale/event", Value: wall / float64(events) * 1e6, Unit: "us wall/event",
			Note: fmt.Sprintf("batches of %d into the whole core, 20 %% deletions, %d emissions among them", updateBatch, emissions),
		},
		{Name: "scale/vacuum", Value: paused, Unit: "s wall", Note: "the pause of a checkpoint, without writing"},
	}, nil
}

// emitEach is after how many batches streamInto asks for estimates.
const emitEach = 10

// streamInto steps the core through batches of the graph's stream and returns the
// time they took.
func streamInto(core *incremental.Core, g *Graph, batches int) (events, emissions int, wall float64) {
	b := &event.Batch{}
	for i := range batches {
		b.Reset()
		b.First, b.Last = core.Position()+1, core.Position()+1
		g.drawFrom(core.View(), b, updateBatch)
		if b.Emit = i%emitEach == emitEach-1; b.Emit {
			emissions++
		}
		begun := time.Now()
		core.Step(b)
		wall += time.Since(begun).Seconds()
		events += updateBatch
	}
	return events, emissions, wall
}
