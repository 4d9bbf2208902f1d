package bench

import (
	"testing"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/lab/simulate"
)

const (
	restartEdges       = 10_000_000 // at the full size; in proportion at others
	restartCommunities = 10
	restartTicks       = 3 // after which all vertices have predictions
)

// measureRestart saves a core and times its restoration: read and verify the checkpoint,
// load the graph, recount the derived state. Its files are in the page cache.
func measureRestart(tb testing.TB, s size) map[string]float64 {
	config := incremental.Config{Classes: 2, CompactEvery: -1}
	dir, err := checkpoint.Open(checkpoint.Disk{}, tb.TempDir())
	check(tb, err)
	edges, bytes := saveGrown(tb, s, dir, config)
	var wall, used []float64
	for range 3 {
		begun, spent := time.Now(), processTime()
		c, err := dir.Load(func(error) {})
		check(tb, err)
		restored, err := incremental.Restore(config, c.Sections)
		check(tb, err)
		wall, used = append(wall, time.Since(begun).Seconds()), append(
			used,
			(processTime()-spent).Seconds(),
		)
		restored.Close()
	}
	return map[string]float64{
		"s-wall":            median(wall),
		"s-cpu":             max(median(used), 1e-9),
		"edges":             float64(edges),
		"B-checkpoint/edge": float64(bytes) / float64(edges),
	}
}

// saveGrown writes the checkpoint of a warm core, of a network with predictions everywhere, and
// returns its edges and bytes.
func saveGrown(
	tb testing.TB, s size, dir *checkpoint.Dir, config incremental.Config,
) (edges int, bytes int64) {
	tb.Helper()
	conf := s.network()
	conf.Vertices = int(float64(conf.Vertices) * restartEdges / float64(fullSize.edges))
	conf.Communities, conf.Activity, conf.LabelShare, conf.LabelDelay,
		conf.PredictionDelay = restartCommunities, 1000, 0.1, 0, 0
	conf.PostRate = conf.Activity / 8
	network, err := simulate.New(conf)
	check(tb, err)
	core, err := incremental.New(config)
	check(tb, err)
	defer core.Close()
	var b event.Batch
	for ticks := 0; ticks < restartTicks; {
		check(tb, network.Next(tb.Context(), &b))
		if core.Step(&b); b.Emit {
			ticks++
		}
	}
	at := core.Position() + 1
	core.Step(&event.Batch{First: at, Last: at, Checkpoint: true}) // puts the store in order
	state, err := core.Sections()
	check(tb, err)
	c := checkpoint.New(checkpoint.Manifest{Position: uint64(at), Config: config.Digest()})
	for _, s := range state {
		c.Add(s.Name, s.Data)
	}
	bytes, err = dir.Save(c)
	check(tb, err)
	return core.View().Edges(), bytes
}
