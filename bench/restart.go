package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"gqlstream/checkpoint"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/simulate"
)

const (
	restartEdges       = 10_000_000 // at the default size; in proportion at others
	restartCommunities = 10
	restartTicks       = 3 // after which all vertices have predictions
)

// measureRestart saves a core and times the way back: read and verify the
// checkpoint, load the graph, count what is not saved.
func measureRestart(ctx context.Context, w *World) ([]Row, error) {
	config := incremental.Config{Classes: 2, CompactEvery: -1}
	root, err := w.tempDir()
	if err != nil {
		return nil, err
	}
	dir, err := checkpoint.Open(checkpoint.Disk{}, filepath.Join(root, "checkpoints"))
	if err != nil {
		return nil, err
	}
	edges, size, err := w.saveGrown(ctx, dir, config)
	if err != nil {
		return nil, err
	}
	var times []float64
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
	return []Row{Row{
		Name: "restart", Value: median(times), Unit: "s wall",
		Note: fmt.Sprintf("load, verify, restore; %d edges, %d communities, %.0f MB, files in the page cache", edges, restartCommunities, float64(size)/1e6),
	}.atMost(10)}, nil
}

// saveGrown writes the checkpoint of a warm core, of a network with predictions everywhere, and
// returns its edges and bytes.
func (w *World) saveGrown(ctx context.Context, dir *checkpoint.Dir, config incremental.Config) (edges int, size int64, err error) {
	conf := w.networkConfig()
	conf.Vertices = int(float64(conf.Vertices) * restartEdges / EdgesDefault)
	conf.Communities, conf.Activity, conf.LabelShare, conf.LabelDelay, conf.PredictionDelay = restartCommunities, 1000, 0.1, 0, 0
	network, err := simulate.New(conf)
	if err != nil {
		return 0, 0, err
	}
	core, err := incremental.New(config)
	if err != nil {
		return 0, 0, err
	}
	defer core.Close()
	w.say("        making a core of %.0f edges", conf.EdgesPerVertex*float64(conf.Vertices))
	var b event.Batch
	for ticks := 0; ticks < restartTicks; {
		if err := network.Next(ctx, &b); err != nil {
			return 0, 0, err
		}
		if core.Step(&b); b.Emit {
			ticks++
		}
	}
	at := core.Position() + 1
	core.Step(&event.Batch{First: at, Last: at, Checkpoint: true}) // puts the store in order
	state, err := core.Save()
	if err != nil {
		return 0, 0, err
	}
	sections := make([]checkpoint.Section, len(state))
	for i, s := range state {
		sections[i] = checkpoint.Section{Name: s.Name, Data: s.Data}
	}
	size, err = dir.Save(checkpoint.Manifest{Position: uint64(at), Config: config.Digest()}, sections)
	return core.View().Edges(), size, err
}
