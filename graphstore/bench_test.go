package graphstore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gqlstream/ingest/event"
)

const (
	benchVertices = 170_000
	benchArrivals = 6_800_000
)

// arrivals returns undirected edges in random order, some repeated, between
// vertices of power-law degree; the largest is near 5,600.
func arrivals(n int) []uint64 {
	rng := rand.New(rand.NewPCG(1, 2))
	order := rng.Perm(benchVertices)
	draw := func() uint32 {
		return uint32(order[int(benchVertices*math.Pow(rng.Float64(), 1/0.6))])
	}
	pairs := make([]uint64, 0, n)
	for len(pairs) < n {
		if u, v := draw(), draw(); u != v {
			pairs = append(pairs, pair(min(u, v), max(u, v)))
		}
	}
	return pairs
}

func insertAll(g *adjacency, pairs []uint64) {
	for _, p := range pairs {
		high, low := unpair(p)
		u, v := Vertex(high), Vertex(low)
		if g.weight(u, v) == 0 {
			g.set(u, v, 0, 1)
		}
	}
}

// indexBytes is the approximate size of an entry in a hub's index map, including the map's spare
// capacity.
const indexBytes = 14

func (g *adjacency) bytes() int {
	entries := 0
	for _, index := range g.hubs {
		entries += len(index)
	}
	n := 40*cap(g.runs) + 24*cap(g.weights) + indexBytes*entries
	for v := range g.runs {
		n += 4 * cap(g.runs[v].neighbors)
		if g.weights != nil {
			n += 8 * cap(g.weights[v])
		}
	}
	return n
}

func newBenchGraph(hubDegree int) *adjacency {
	g := newAdjacency(hubDegree)
	g.runs = make([]run, benchVertices)
	return &g
}

func BenchmarkInsert(b *testing.B) {
	pairs := arrivals(benchArrivals)
	for _, hub := range []int{64, 128, 192, 256, 512} {
		b.Run(fmt.Sprint("hub", hub), func(b *testing.B) {
			for b.Loop() {
				g := newBenchGraph(hub)
				insertAll(g, pairs)
				b.ReportMetric(float64(g.bytes())/float64(g.edges), "B/edge")
			}
			b.ReportMetric(
				float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*len(pairs)),
				"ns/directed",
			)
		})
	}
}

func BenchmarkDelete(b *testing.B) {
	pairs := arrivals(benchArrivals)
	g := newBenchGraph(hubDegreeDefault)
	for b.Loop() {
		b.StopTimer()
		insertAll(g, pairs)
		edges := g.edges
		b.StartTimer()
		for _, p := range pairs {
			high, low := unpair(p)
			if u, v := Vertex(high), Vertex(low); g.weight(u, v) != 0 {
				g.set(u, v, 1, 0)
			}
		}
		b.ReportMetric(float64(2*edges), "entries")
	}
	b.ReportMetric(
		float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*len(pairs)),
		"ns/directed",
	)
}

func BenchmarkScan(b *testing.B) {
	g := newBenchGraph(hubDegreeDefault)
	insertAll(g, arrivals(benchArrivals))
	scan := func(b *testing.B) {
		x, total := make([]float64, benchVertices), 0.0
		for b.Loop() {
			for v := range Vertex(benchVertices) {
				for _, u := range g.Neighbors(v) {
					total += x[u]
				}
			}
		}
		b.ReportMetric(
			float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*g.edges),
			"ns/entry",
		)
	}
	b.Run("grown", scan)
	b.Run("compact", func(b *testing.B) {
		for b.Loop() {
			g.compact()
		}
		b.ReportMetric(float64(g.bytes())/float64(g.edges), "B/edge")
		b.ReportMetric(
			float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*g.edges),
			"ns/entry",
		)
	})
	b.Run("compacted", scan)
}

func BenchmarkHub(b *testing.B) {
	const degree = 160_000
	g := newBenchGraph(hubDegreeDefault)
	for v := range Vertex(degree) {
		g.set(0, v+1, 0, 1)
	}
	b.Run("insert", func(b *testing.B) {
		const more = 8000
		for b.Loop() {
			for v := range Vertex(more) {
				g.set(0, degree+1+v, 0, 1)
			}
			b.StopTimer()
			for v := range Vertex(more) {
				g.set(0, degree+1+v, 1, 0)
			}
			b.StartTimer()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*more), "ns/directed")
	})
	b.Run("delete and insert", func(b *testing.B) {
		rng := rand.New(rand.NewPCG(1, 2))
		for b.Loop() {
			v := Vertex(1 + rng.IntN(degree))
			g.set(0, v, 1, 0)
			g.set(0, v, 0, 1)
		}
	})
}

const benchBatch = 4096

// edgeBatches turns arrivals into batches of edges between identities.
func edgeBatches(pairs []uint64, id func(v uint32) event.ID) []event.Batch {
	ids := make([]event.ID, benchVertices)
	for v := range ids {
		ids[v] = id(uint32(v))
	}
	batches := make([]event.Batch, len(pairs)/benchBatch)
	for i := range batches {
		batches[i].Edges = make([]event.Edge, benchBatch)
		for j := range benchBatch {
			high, low := unpair(pairs[i*benchBatch+j])
			batches[i].Edges[j] = event.Edge{Src: ids[high], Dst: ids[low], Weight: 1}
		}
	}
	return batches
}

func benchStore(b *testing.B, batches []event.Batch) *Store {
	s, err := New(Config{Classes: 2})
	if err != nil {
		b.Fatal(err)
	}
	for i := range batches {
		s.Apply(&batches[i])
	}
	return s
}

func numbered(v uint32) event.ID { return event.NumberID(uint64(v) * 7919) }

func named(v uint32) event.ID { return event.ParseID(fmt.Sprintf("user-%010d", v)) }

// The whole of Apply with its Delta, from an empty store.
func BenchmarkApply(b *testing.B) {
	pairs := arrivals(benchArrivals)
	for name, id := range map[string]func(uint32) event.ID{"numbers": numbered, "names": named} {
		b.Run(name, func(b *testing.B) {
			batches := edgeBatches(pairs, id)
			b.ResetTimer()
			for b.Loop() {
				s := benchStore(b, batches)
				b.ReportMetric(float64(s.edges.bytes())/float64(s.edges.edges), "B/edge")
				s.Release()
			}
			b.ReportMetric(
				float64(b.N*len(batches)*benchBatch)/b.Elapsed().Seconds()/1e6,
				"Mevents/s",
			)
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := benchStore(b, edgeBatches(arrivals(benchArrivals), numbered))
	defer s.Release()
	files := map[Table][]byte{}
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			files = save(b, s)
		}
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			loaded, err := Load(
				Config{Classes: 2},
				func(t Table) ([]byte, error) { return files[t], nil },
			)
			if err != nil {
				b.Fatal(err)
			}
			loaded.Release()
		}
	})
}

// Batches that join and leave, in few large communities and in many small ones.
func BenchmarkMembers(b *testing.B) {
	for _, shape := range []struct{ communities, members int }{{1, 1_000_000}, {1000, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", shape.communities, shape.members), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			s := benchStore(b, nil)
			defer s.Release()
			draw := func(batch *event.Batch, n, most int) {
				batch.Members = batch.Members[:0]
				for range n {
					batch.Members = append(batch.Members, event.Member{
						Community: fmt.Sprint(
							rng.IntN(shape.communities),
						), Multiplicity: uint32(rng.IntN(most)),
						Vertex: event.NumberID(rng.Uint64N(2 * uint64(shape.members))),
					})
				}
			}
			var batch event.Batch
			draw(&batch, 2*shape.communities*shape.members, 2)
			s.Apply(&batch)
			batches := make([]event.Batch, 50)
			for i := range batches {
				draw(&batches[i], benchBatch, 2)
			}
			i := 0
			b.ResetTimer()
			for b.Loop() {
				s.Apply(&batches[i%len(batches)])
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchBatch, "ns/event")
		})
	}
}
