package diffusion

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gqlstream/graphstore"
)

// The default graph keeps `go test -bench .` short; -large is of Twitch's size.
var large = flag.Bool("large", false, "benchmark on 168,114 vertices and 6,797,557 edges")

var benchmarkGraphs = map[bool]*randomGraph{}

func benchmarkGraph(b *testing.B) *randomGraph {
	g := benchmarkGraphs[*large]
	if g == nil {
		n, edges := 20_000, 400_000
		if *large {
			n, edges = 168_114, 6_797_557
		}
		g = newRandomGraph(b, rand.New(rand.NewPCG(1, 1)), n, edges)
		benchmarkGraphs[*large] = g
	}
	return g
}

func benchmarkSources(g *randomGraph, members int) []SourceChange {
	r := rand.New(rand.NewPCG(2, 2))
	var sources []SourceChange
	for range members {
		sources = append(sources, SourceChange{Vertex(r.IntN(g.store.View().Vertices())), 1})
	}
	return sources
}

// BenchmarkUpdate measures one field under 80 % insertions and 20 % deletions,
// without the store's own work, in processor time. The ratios are those of a recompute to the same
// certificate to one update: x-recompute by our own iteration, x-plain by the
// recursion x <- (1-a) P x + a m that libraries run.
func BenchmarkUpdate(b *testing.B) {
	for _, tolerance := range []float64{1e-2, 1e-1} {
		for _, batch := range []int{1, 100, 1000, 10000} {
			for _, members := range []int{1, 100, 9000} {
				b.Run(
					fmt.Sprintf("eta=%g/batch=%d/members=%d", tolerance, batch, members),
					func(b *testing.B) {
						benchmarkUpdate(b, tolerance, batch, members)
					},
				)
			}
		}
	}
}

func benchmarkUpdate(b *testing.B, tolerance float64, batch, members int) {
	lockThread(b)
	g := benchmarkGraph(b)
	f := newField(b, 0.1, tolerance)
	f.Solve(g.store.View(), benchmarkSources(g, members), tolerance/3)
	fill := int(tolerance * f.degreeSum)        // events, and more than it takes
	for left := fill; left > 0; left -= batch { // into the steady state: full, and then some
		view, delta := g.change(batch)
		f.Update(view, delta, nil)
		if f.Certificate() > 0.95*tolerance {
			left = min(left, 20_000)
		}
	}
	spent, certificates, touched, before := time.Duration(0), 0.0, 0, f.Work()
	n := 0
	for b.Loop() {
		view, delta := g.change(batch)
		start := cpuTime()
		f.Update(view, delta, nil)
		spent += cpuTime() - start
		certificates += f.Certificate()
		touched += len(f.Touched())
		n++
	}
	certificate := certificates / float64(n)
	recompute := benchmarkRecompute(b, g.store.View(), f, certificate)
	events := float64(n * batch)
	after := f.Work()
	b.ReportMetric(float64(spent)/float64(n), "ns/op")
	b.ReportMetric(float64(spent)/events, "ns/event")
	b.ReportMetric(float64(after.Traversals-before.Traversals)/events, "visits/event")
	b.ReportMetric(float64(after.Pushes-before.Pushes)/events, "pushes/event")
	b.ReportMetric(float64(touched)/events, "touched/event")
	b.ReportMetric(certificate, "certificate")
	b.ReportMetric(float64(recompute)*float64(n)/float64(spent), "x-recompute")
	plain := plainIteration(g.store.View(), 0.1, certificate)
	b.ReportMetric(float64(plain)*float64(n)/float64(spent), "x-plain")
	b.ReportMetric(float64(after.Solves-before.Solves), "solves")
	b.ReportMetric(float64(after.Shifts-before.Shifts), "shifts")
}

// benchmarkRecompute returns the shortest of three times that a new field with
// the source of f takes to the certificate.
func benchmarkRecompute(
	b *testing.B, view graphstore.View, f *Field, certificate float64,
) time.Duration {
	var sources []SourceChange
	for v, m := range f.source {
		if m > 0 {
			sources = append(sources, SourceChange{Vertex(v), m})
		}
	}
	best := time.Duration(math.MaxInt64)
	for range 3 {
		g := newField(b, f.config.Alpha, f.config.Tolerance)
		start := cpuTime()
		g.Solve(view, sources, certificate)
		best = min(best, cpuTime()-start)
	}
	return best
}

// BenchmarkRecompute measures Solve from nothing.
func BenchmarkRecompute(b *testing.B) {
	g := benchmarkGraph(b)
	view := g.store.View()
	for _, certificate := range []float64{1e-2, 1e-3, 1e-6} {
		b.Run(fmt.Sprintf("certificate=%g", certificate), func(b *testing.B) {
			lockThread(b)
			sources := benchmarkSources(g, 100)
			passes, spent, n := uint64(0), time.Duration(0), 0
			for b.Loop() {
				f := newField(b, 0.1, 1e-2)
				start := cpuTime()
				f.Solve(view, sources, certificate)
				spent += cpuTime() - start
				passes = f.Work().Iterations
				n++
			}
			b.ReportMetric(float64(spent)/float64(n), "ns/op")
			b.ReportMetric(float64(passes), "passes")
		})
	}
}

// plainIteration returns how long the plain recursion takes to the certificate: its
// error falls by 1-a a pass, and three passes are timed.
func plainIteration(view graphstore.View, alpha, certificate float64) time.Duration {
	const timed = 3
	m := make([]float64, view.Vertices())
	m[0] = 1
	start := cpuTime()
	walk(view, m, alpha, 1, timed)
	passes := math.Ceil(math.Log(certificate) / math.Log(1-alpha))
	return time.Duration(float64(cpuTime()-start) / timed * passes)
}
