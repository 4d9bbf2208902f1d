package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"gqlstream/checkpoint"
	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
)

const (
	restartEdges       = 10_000_000 // at the default size; in proportion at others
	restartCommunities = 10
	restartMembers     = 1000
	labelledShare      = 0.1
)

// measureRestart saves a core and times the way back: read and verify the
// checkpoint, load the graph, count what is not saved.
func measureRestart(ctx context.Context, w *World) ([]Row, error) {
	config := incremental.Config{Classes: 2, CompactEvery: -1}
	for c := range restartCommunities {
		config.Communities = append(config.Communities, graphstore.Rule{Name: fmt.Sprint("group", c)})
	}
	edges := int(float64(w.Edges) * restartEdges / EdgesDefault)
	w.say("        making a core of %d edges", edges)
	root, err := w.tempDir()
	if err != nil {
		return nil, err
	}
	dir, err := checkpoint.Open(checkpoint.Disk{}, filepath.Join(root, "checkpoints"))
	if err != nil {
		return nil, err
	}
	core, _, err := w.grownCore(ctx, config, edges)
	if err != nil {
		return nil, err
	}
	made := core.View().Edges()
	begun := time.Now()
	at := core.Position() + 1
	core.Step(&event.Batch{First: at, Last: at, Checkpoint: true}) // puts the store in order
	ordered := time.Since(begun).Seconds()
	begun = time.Now()
	_, err = core.Save()
	copied := time.Since(begun).Seconds()
	if err != nil {
		core.Close()
		return nil, err
	}
	begun = time.Now()
	size, err := save(dir, core, config)
	saved := time.Since(begun).Seconds()
	core.Close()
	if err != nil {
		return nil, err
	}
	times, err := restore(dir, config)
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("%d edges, %d communities with their fields, %.0f MB, files in the page cache", made, restartCommunities, float64(size)/1e6)
	return []Row{
		Row{Name: "restart", Value: median(times), Unit: "s wall", Note: "load, verify, restore; " + note}.atMost(10),
		{Name: "restart/order", Value: ordered, Unit: "s wall", Note: "a step that puts the store in order; the loop stands still for this and the copy; " + note},
		{Name: "restart/copy", Value: copied, Unit: "s wall", Note: note},
		{Name: "restart/save", Value: saved, Unit: "s wall", Note: "copy, write, sync, read back; " + note},
	}, nil
}

// restore reads the newest checkpoint three times and returns how long each took.
func restore(dir *checkpoint.Dir, config incremental.Config) (times []float64, err error) {
	for range 3 {
		begun := time.Now()
		c, err := dir.Load()
		if err != nil {
			return nil, err
		}
		restored, err := incremental.Restore(config, c.Sections)
		if err != nil {
			return nil, err
		}
		times = append(times, time.Since(begun).Seconds())
		restored.Close()
	}
	return times, nil
}

// grownCore returns a warm, compacted core of a graph with predictions everywhere,
// labels at a tenth of the vertices, and communities from the planted groups, and
// the graph that draws more of the same.
func (w *World) grownCore(ctx context.Context, config incremental.Config, edges int) (*incremental.Core, *Graph, error) {
	core, err := incremental.New(config)
	if err != nil {
		return nil, nil, err
	}
	g := w.NewGraph(int(float64(w.Vertices) * float64(edges) / float64(w.Edges)))
	b := &event.Batch{First: 1}
	step := func() {
		b.Last++
		core.Step(b)
		last := b.Last
		b.Reset()
		b.First, b.Last = last+1, last
	}
	for v := range g.n {
		if describe(b, g, v); v%buildBatch == buildBatch-1 {
			step()
		}
	}
	for core.View().Edges() < edges && ctx.Err() == nil {
		for range min(edges-core.View().Edges(), buildBatch) {
			b.Edges = append(b.Edges, g.Edge())
		}
		step()
	}
	b.Emit = true
	step()
	b.Checkpoint = true
	step()
	if err := ctx.Err(); err != nil {
		core.Close()
		return nil, nil, err
	}
	return core, g, nil
}

// describe adds what is known of a vertex besides its edges.
func describe(b *event.Batch, g *Graph, name int) {
	group, id := g.Group(name), number(uint32(name))
	class := event.Class(group % 2)
	if g.rand.IntN(4) == 0 {
		class = 1 - class // groups are not of one mind
	}
	units := b.Units(2)
	units[class] = event.One/4*3 - uint32(g.rand.IntN(event.One/2))
	units[1-class] = event.One - units[class]
	b.Predictions = append(b.Predictions, event.Prediction{Vertex: id, Units: units})
	if g.rand.Float64() < labelledShare {
		b.Labels = append(b.Labels, event.Label{Vertex: id, Class: class})
	}
	if name < restartCommunities*restartMembers {
		b.Members = append(b.Members, event.Member{
			Community: fmt.Sprint("group", name%restartCommunities), Vertex: id, Multiplicity: 1,
		})
	}
}

// save writes a checkpoint as the running pipeline does.
func save(dir *checkpoint.Dir, core *incremental.Core, config incremental.Config) (int64, error) {
	state, err := core.Save()
	if err != nil {
		return 0, err
	}
	sections := make([]checkpoint.Section, len(state))
	for i, s := range state {
		sections[i] = checkpoint.Section{Name: s.Name, Data: s.Data}
	}
	return dir.Save(checkpoint.Manifest{Position: uint64(core.Position()), Config: config.Digest()}, sections)
}
