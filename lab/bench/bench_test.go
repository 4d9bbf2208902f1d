package bench

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"gqlstream/pipeline"
)

// seed is that of every network.
const seed = 1

// size says how large a measurement is.
type size struct {
	vertices, edges int  // of the network, edges undirected
	tiny            bool // fewer repetitions and events
}

var (
	fullSize = size{vertices: 168_000, edges: 6_800_000}
	tinySize = size{vertices: 1000, edges: 8000, tiny: true}
)

// pick returns one of two sizes.
func (s size) pick(full, tiny int) int {
	if s.tiny {
		return tiny
	}
	return full
}

// A measurement returns figures by their units. It prepares its own data.
type measurement func(tb testing.TB, s size) map[string]float64

// single are the measurements that stand alone; the others are rows of a family.
var single = map[string]measurement{
	"Memory":      measureMemory,
	"Update":      measureUpdate,
	"Recompute":   measureRecompute,
	"Certificate": measureCertificate,
	"Ingest":      measureIngest,
	"JSON":        measureJSON,
	"Restart":     measureRestart,
	"Loading":     measureLoading,
}

// The collector is that of the command, so that garbage costs the same here.
func TestMain(m *testing.M) {
	pipeline.TuneCollector()
	os.Exit(m.Run())
}

// benchmark reports the means of the figures over all iterations.
func benchmark(b *testing.B, measure measurement) {
	sums := map[string]float64{}
	for b.Loop() {
		for unit, x := range measure(b, fullSize) {
			sums[unit] += x
		}
	}
	for unit, sum := range sums {
		b.ReportMetric(sum/float64(b.N), unit)
	}
	b.ReportMetric(0, "ns/op") // is left out
}

// The whole run with one emission a second. Goals in us-cpu/edge:
//
//	communities    2 classes   5  10  20
//	12                     8  10  15  25
//	300                   10  15  20  35
//	3000                  15  20  30  50
//	10000                 20  30  50  80
func BenchmarkLive(b *testing.B) { benchmarkLive(b, liveEmitEvery) }

// The same with ten emissions a second.
func BenchmarkLiveShort(b *testing.B) { benchmarkLive(b, 100*time.Millisecond) }

func benchmarkLive(b *testing.B, emitEvery time.Duration) {
	for _, communities := range liveCommunities {
		for _, classes := range liveClasses {
			b.Run(fmt.Sprintf("%d/%d", classes, communities), func(b *testing.B) {
				row := liveRow(classes, communities)
				row.emitEvery = emitEvery
				benchmark(b, row.measure)
			})
		}
	}
}

// Communities of one size.
func BenchmarkMembers(b *testing.B) {
	for _, members := range []int{50, 2500, 100_000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) { benchmark(b, membersRow(members).measure) })
	}
}

// A history that brings nearly all predictions and labels in its first seconds. Goal: 3 s-cpu.
func BenchmarkLoading(b *testing.B) { benchmark(b, single["Loading"]) }

// Bytes of the store. Goal: 30 B/edge.
func BenchmarkMemory(b *testing.B) { benchmark(b, single["Memory"]) }

// One field kept current. Goal: 10 us-cpu/edge.
func BenchmarkUpdate(b *testing.B) { benchmark(b, single["Update"]) }

// Updating against computing from scratch. Goal: 1,000 times.
func BenchmarkRecompute(b *testing.B) { benchmark(b, single["Recompute"]) }

// Arrow batches from a durable stream into the core. Goal: 1,000,000 edges/s-wall.
func BenchmarkIngest(b *testing.B) { benchmark(b, single["Ingest"]) }

// Single JSON events from a durable stream into the core. Goal: 100,000 edges/s-wall.
func BenchmarkJSON(b *testing.B) { benchmark(b, single["JSON"]) }

// From a checkpoint on disk to a core that goes on. Goal: 10 s-wall.
func BenchmarkRestart(b *testing.B) { benchmark(b, single["Restart"]) }

// True error against certificate after a long stream. Goal: at most 1.
func BenchmarkCertificate(b *testing.B) { benchmark(b, single["Certificate"]) }

// Every measurement must give finite, positive figures, and the certificate must hold; no
// figure is held against a time.
func TestEveryMeasurementGivesFigures(t *testing.T) {
	all := maps.Clone(single)
	for _, communities := range liveCommunities {
		for _, classes := range liveClasses {
			all[fmt.Sprintf("Live/%d/%d", classes, communities)] = liveRow(
				classes,
				communities,
			).measure
		}
	}
	all["Members"] = membersRow(2500).measure
	for name, measure := range all {
		t.Run(name, func(t *testing.T) {
			figures := measure(t, tinySize)
			if len(figures) == 0 {
				t.Error("no figures")
			}
			for unit, x := range figures {
				if math.IsNaN(x) || math.IsInf(x, 0) || x <= 0 {
					t.Errorf("%v %s", x, unit)
				}
			}
			if ratio := figures["error/certificate"]; ratio > 1 {
				t.Errorf("the error is %v times the certificate", ratio)
			}
		})
	}
}

// The graph must be a function of the seed.
func TestGraphIsAFunctionOfTheSeed(t *testing.T) {
	small := func(seed uint64) *graph {
		conf := size{vertices: 500, edges: 3000}.network()
		conf.Seed = seed
		return newGraph(t, conf)
	}
	a, b, c := small(5), small(5), small(6)
	for range 5 {
		_, da := a.change(t, 100)
		_, db := b.change(t, 100)
		_, dc := c.change(t, 100)
		if !slices.Equal(da.Edges, db.Edges) {
			t.Fatal("one seed gives two streams")
		}
		if slices.Equal(da.Edges, dc.Edges) {
			t.Fatal("two seeds give one stream")
		}
	}
}

// check ends the measurement at an error.
func check(tb testing.TB, errs ...error) {
	tb.Helper()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}

// median returns the middle of the values, which it sorts.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile returns the value below which this share of the values is. It sorts the values.
func quantile(values []float64, share float64) float64 {
	slices.Sort(values)
	at := share * float64(len(values)-1)
	below, above := values[int(at)], values[int(math.Ceil(at))]
	return below + (above-below)*(at-math.Floor(at))
}

// processTime returns the processor time of all threads of the process.
func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // every system that we build for has it
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// micros returns d in microseconds for each of n.
func micros(d time.Duration, n int) float64 { return max(d, 1).Seconds() * 1e6 / float64(n) }
