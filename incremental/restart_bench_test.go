package incremental

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// BenchmarkRestart saves and restores a warm core with one field: the pause of a
// checkpoint, and the time of a start apart from reading files.
func BenchmarkRestart(b *testing.B) {
	for _, edges := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("edges=%d", edges), func(b *testing.B) {
			config := Config{
				Classes:     2,
				Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
			}
			core := grown(b, config, edges)
			defer core.Close()
			var pause, restart time.Duration
			size := 0
			for b.Loop() {
				begun := time.Now()
				saved, err := core.Sections()
				if err != nil {
					b.Fatal(err)
				}
				pause += time.Since(begun)
				sections := map[string][]byte{}
				size = 0
				for _, s := range saved {
					sections[s.Name] = s.Data
					size += len(s.Data)
				}
				begun = time.Now()
				twin, err := Restore(config, sections)
				if err != nil {
					b.Fatal(err)
				}
				restart += time.Since(begun)
				twin.Close()
			}
			b.ReportMetric(pause.Seconds()*1e3/float64(b.N), "ms-pause")
			b.ReportMetric(restart.Seconds()*1e3/float64(b.N), "ms-restart")
			b.ReportMetric(float64(size)/float64(edges), "B/edge")
		})
	}
}

// grown returns a warm core over a random graph with ten edges a vertex.
func grown(b *testing.B, config Config, edges int) *Core {
	b.Helper()
	core := newCore(b, config)
	r := rand.New(rand.NewPCG(1, 29))
	vertices := edges / 10
	id := func() event.ID { return event.NumberID(r.Uint64N(uint64(vertices))) }
	var batch event.Batch
	const step = 1 << 16
	for made := 0; made < edges; made += step {
		batch.Reset()
		batch.First, batch.Last, batch.Time = event.Position(made+1), event.Position(
			made+step,
		), event.Time(made+1)
		var units []uint32
		for range min(step, edges-made) {
			batch.Edges = append(batch.Edges, event.Edge{Src: id(), Dst: id(), Weight: 1})
		}
		for range step / 10 {
			p := r.Uint32N(event.One)
			units = append(units, p, event.One-p)
			batch.Predictions = append(
				batch.Predictions,
				event.Prediction{Vertex: id(), Units: units[len(units)-2:], Version: "m"},
			)
			batch.Labels = append(
				batch.Labels,
				event.Label{Vertex: id(), Class: event.Class(r.IntN(2))},
			)
		}
		batch.Emit = made+step >= edges
		core.Step(&batch)
	}
	return core
}
