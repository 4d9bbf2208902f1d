package graphstore

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// residentBytes returns the resident memory of this process.
func residentBytes(tb testing.TB) int { return statusBytes(tb, "VmRSS:") }

// statusBytes returns a figure of /proc/self/status in bytes.
func statusBytes(tb testing.TB, name string) int {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		tb.Skip("memory is read from /proc: ", err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, is := strings.CutPrefix(lines.Text(), name); is {
			kib := 0
			if _, err := fmt.Sscan(text, &kib); err != nil {
				tb.Fatal(err)
			}
			return kib << 10
		}
	}
	tb.Fatal("/proc/self/status has no ", name)
	return 0
}

// processorTime returns the processor time of this process.
func processorTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkGrow grows a graph from nothing and reports the figures of an operator: edges a
// second of processor time and resident bytes an edge, with spare memory and garbage. Only
// one batch of the input is in memory. Run it alone and once, since memory of other
// benchmarks is resident too:
//
//	go test -run '^$' -bench 'Grow$' -benchtime 1x ./graphstore
func BenchmarkGrow(b *testing.B) {
	const vertices, arrivals = 168_000, 6_800_000
	rng := rand.New(rand.NewPCG(1, 2))
	order := rng.Perm(vertices)
	draw := func() event.ID {
		return event.NumberID(uint64(order[int(vertices*math.Pow(rng.Float64(), 1/0.6))]) * 7919)
	}
	batch := event.Batch{Edges: make([]event.Edge, benchBatch)}
	before := residentBytes(b)
	for b.Loop() {
		s := benchStore(b, nil)
		applied := time.Duration(0)
		for range arrivals / benchBatch {
			for i := range batch.Edges {
				e := event.Edge{Weight: 1}
				for e.Src == e.Dst {
					e.Src, e.Dst = draw(), draw()
				}
				batch.Edges[i] = e
			}
			start := processorTime(b)
			s.Apply(&batch)
			applied += processorTime(b) - start
		}
		edges := float64(s.View().Edges())
		b.ReportMetric(float64(residentBytes(b)-before)/edges, "resident-B/edge")
		b.ReportMetric(arrivals/applied.Seconds()/1e6, "Mevents/s-cpu")
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/edges, "heap-B/edge")
		s.Release()
	}
}
