package pipeline

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// By default the collector waits until a heap has doubled, which is too much of a large
// one: ours are columns without pointers, which take no time to mark, so that it can as
// well come more often. What may pile up is all of a small heap, garbageBytes of a larger
// one, and percentMin of the largest.
const (
	garbageBytes = 256 << 20
	percentMin   = 20
	percentMax   = 100
)

// collectorPercent returns the value of GOGC for so many live bytes.
func collectorPercent(live uint64) int {
	return int(min(percentMax, max(percentMin, 100*garbageBytes/max(live, 1))))
}

// TuneCollector applies collectorPercent after every collection from now on, unless GOGC or
// GOMEMLIMIT is set.
func TuneCollector() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		afterCollection(&collection{
			set: percentMax, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}},
		})
	}
}

// collection is garbage on purpose: its finalizer runs after every collection. It holds a
// pointer, for what is small and has none may share its block with what lives on.
type collection struct {
	set  int
	live []metrics.Sample
}

func afterCollection(c *collection) {
	metrics.Read(c.live)
	if want := collectorPercent(c.live[0].Value.Uint64()); want != c.set {
		debug.SetGCPercent(want)
		c.set = want
	}
	runtime.SetFinalizer(c, afterCollection)
}
