package graphstore

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// peakBytes returns the largest resident memory since the last call.
func peakBytes(tb testing.TB) int {
	peak := statusBytes(tb, "VmHWM:")
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		tb.Fatal(err)
	}
	return peak
}

// checkpointTraffic makes batches of edges that begin and end between random vertices.
type checkpointTraffic struct {
	rng   *rand.Rand
	order []int
	live  []event.Edge // a sample of the edges that there are
	batch event.Batch
}

func (c *checkpointTraffic) draw() event.ID {
	n := float64(len(c.order))
	return event.NumberID(uint64(c.order[int(n*math.Pow(c.rng.Float64(), 1/0.6))]) * 7919)
}

// fill makes the next batch: new edges, and with removals as many that end.
func (c *checkpointTraffic) fill(removals bool) {
	c.batch.Edges = c.batch.Edges[:0]
	for i := range benchBatch {
		if removals && i%2 == 1 && len(c.live) > 0 {
			at := c.rng.IntN(len(c.live))
			e := c.live[at]
			c.live[at] = c.live[len(c.live)-1]
			c.live = c.live[:len(c.live)-1]
			e.Remove = true
			c.batch.Edges = append(c.batch.Edges, e)
			continue
		}
		e := event.Edge{Weight: 1}
		for e.Src == e.Dst {
			e.Src, e.Dst = c.draw(), c.draw()
		}
		if c.batch.Edges = append(c.batch.Edges, e); c.rng.IntN(20) == 0 {
			c.live = append(c.live, e)
		}
	}
}

// BenchmarkCheckpoint grows a graph of 10 million edges and reports what it and its checkpoints
// cost: the first one, when every run has changed, and one after a minute of traffic. Run it alone
// and once:
//
//	go test -run '^$' -bench 'Checkpoint$' -benchtime 1x ./graphstore
func BenchmarkCheckpoint(b *testing.B) {
	const vertices, arrivals, traffic = 250_000, 10_400_000, 60 * 4096
	rng := rand.New(rand.NewPCG(1, 2))
	c := checkpointTraffic{rng: rng, order: rng.Perm(vertices)}
	empty := residentBytes(b)
	for b.Loop() {
		s := benchStore(b, nil)
		insert := func(n int, removals bool) float64 {
			spent := time.Duration(0)
			for range n / benchBatch {
				c.fill(removals)
				start := processorTime(b)
				s.Apply(&c.batch)
				spent += processorTime(b) - start
			}
			return float64(n) / spent.Seconds() / 1e6
		}
		for from := 0; from < vertices; from += benchBatch {
			var batch event.Batch
			for v := from; v < min(vertices, from+benchBatch); v++ {
				p := event.Prediction{Vertex: event.NumberID(uint64(v) * 7919), Time: 1}
				p.Units = []uint32{event.One / 4, event.One - event.One/4}
				batch.Predictions = append(batch.Predictions, p)
			}
			s.Apply(&batch)
		}
		b.ReportMetric(insert(arrivals, false), "Mevents/s-cpu-grow")
		edges := float64(s.View().Edges())
		b.ReportMetric(edges, "edges")
		scan := func() float64 {
			start, sum, n := processorTime(b), 0.0, 0
			x := make([]float64, vertices)
			for range 3 {
				for v := range Vertex(vertices) {
					for _, u := range s.View().Neighbors(v) {
						sum += x[u]
						n++
					}
				}
			}
			runtime.KeepAlive(sum)
			return float64((processorTime(b) - start).Nanoseconds()) / float64(n)
		}
		memory := func(name string) {
			b.ReportMetric(float64(residentBytes(b)-empty)/edges, "resident-B/edge-"+name)
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/edges, "heap-B/edge-"+name)
		}
		save := func(name string) {
			peakBytes(b)
			begun, start := time.Now(), processorTime(b)
			sections := s.Sections()
			b.ReportMetric(time.Since(begun).Seconds()*1e3, "ms-wall-pause-"+name)
			b.ReportMetric((processorTime(b)-start).Seconds()*1e3, "ms-cpu-pause-"+name)
			start = processorTime(b)
			var files [][]byte
			for _, section := range sections {
				data, err := section.Encode()
				if err != nil {
					b.Fatal(err)
				}
				files = append(files, data)
			}
			b.ReportMetric((processorTime(b)-start).Seconds()*1e3, "ms-cpu-encode-"+name)
			b.ReportMetric(float64(peakBytes(b)-empty)/edges, "peak-B/edge-"+name)
			runtime.KeepAlive(files)
		}
		b.ReportMetric(scan(), "ns/entry-grown")
		memory("grown")
		save("first")
		memory("compact")
		b.ReportMetric(scan(), "ns/entry-compact")
		b.ReportMetric(insert(traffic, true), "Mevents/s-cpu-after")
		memory("after")
		save("second")
		s.Release()
	}
}
