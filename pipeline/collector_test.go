package pipeline

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestCollectorComesSoonerToLargeHeaps(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 100, 1 << 20: 100, 256 << 20: 100, 512 << 20: 50,
		1 << 30: 25, 4 << 30: 20, 1 << 40: 20,
	} {
		if got := collectorPercent(live); got != want {
			t.Errorf("%d live bytes: %d %%, want %d", live, got, want)
		}
	}
}

// A heap that grows must lower the percentage by itself, one that shrinks raise it again.
func TestCollectorFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetGCPercent(debug.SetGCPercent(percentMax))
	TuneCollector()
	reaches := func(below bool) {
		t.Helper()
		for begun := time.Now(); ; runtime.GC() {
			percent := debug.SetGCPercent(percentMax)
			debug.SetGCPercent(percent)
			if percent < percentMax == below {
				return
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("percentage is %d", percent)
			}
		}
	}
	columns := make([]byte, 1<<30) // no page of it is touched
	reaches(true)
	runtime.KeepAlive(columns)
	columns = nil
	reaches(false)
}
