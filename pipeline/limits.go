package pipeline

import (
	"context"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// limitLog makes sure that the log has limits on its content. It derives the missing ones from the
// memory of this machine, and reports the limits in force.
func limitLog(
	ctx context.Context, js jetstream.JetStream, log string, c incremental.Config,
	report *slog.Logger,
) error {
	configured, memory := c.Limits, machineMemory("")
	var derived event.Limits // with unknown memory: the capacity of the indices
	if memory > 0 {
		derived = graphstore.LimitsOf(memory, c.Classes)
	}
	recorded, err := ingest.RecordLimits(ctx, js, log, derived)
	if err != nil {
		return err
	}
	now := configured.Or(recorded)
	report.Info("events beyond these are refused", "vertices", now.Vertices, "edges", now.Edges,
		"communities", now.Communities, "memberships", now.Memberships, "memory", memory)
	if recorded != derived && configured.Or(derived).Edges < now.Edges {
		report.Warn(
			"the log's limits were derived from more memory than this machine has; limits.* in "+
				"the configuration bound it",
			"edges", now.Edges, "here", derived.Edges)
	}
	return nil
}

const fillWarned = 0.9 // share of a limit that is reported

// watchFill reports once for each limit that it is nearly reached, and returns all.
func (s *shownStatus) watchFill(
	fills []graphstore.Fill,
	warn func(text string, args ...any),
) (list []web.Fill) {
	for _, f := range fills {
		if float64(f.Used) >= fillWarned*float64(f.Max) && !s.nearlyFull[f.Kind] {
			s.nearlyFull[f.Kind] = true
			warn("a limit is nearly reached: beyond it events are refused, or memory is short",
				"what", f.Kind, "used", f.Used, "limit", f.Max)
		}
		list = append(list, web.Fill(f))
	}
	return list
}

// machineMemory returns the bytes of memory that the process may use: the least of the machine's
// memory, its container's limit and the runtime's memory limit; 0 if none is known. root is
// prepended to the paths of files, "" except in tests.
func machineMemory(root string) uint64 {
	return leastMemory(append(containerMemory(root), systemMemory(),
		uint64(debug.SetMemoryLimit(-1))))
}

// memoryUnlimited is above any real memory: control groups of version 1 and the runtime write "no
// limit" as a number near the largest.
const memoryUnlimited = 1 << 60

// leastMemory returns the least of several limits, ignoring 0 and unlimited ones; 0 if none is
// left.
func leastMemory(limits []uint64) uint64 {
	least := uint64(memoryUnlimited)
	for _, bytes := range limits {
		if bytes > 0 {
			least = min(least, bytes)
		}
	}
	if least == memoryUnlimited {
		return 0
	}
	return least
}

// containerMemory returns the limits of the process's control groups, of either version; "max" is
// no limit.
func containerMemory(root string) (limits []uint64) {
	groups, _ := os.ReadFile(root + "/proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		dir, name := "/sys/fs/cgroup", "memory.max"
		if controllers == "memory" {
			dir, name = dir+"/memory", "memory.limit_in_bytes"
		} else if controllers != "" {
			continue
		}
		// parent groups bind as well; in a container ours may be the root
		for ; ; group = path.Dir(group) {
			text, _ := os.ReadFile(path.Join(root+dir, group, name))
			bytes, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			limits = append(limits, bytes)
			if group == "/" || group == "." {
				break
			}
		}
	}
	return limits
}

// By default the collector waits until a heap has doubled, which is too much for a large one. Our
// large heaps are columns without pointers, which are quick to mark, so the collector can run more
// often. Garbage may grow to the size of a small heap, to garbageBytes for a larger one, and to
// percentMin of the largest.
const (
	garbageBytes = 256 << 20
	percentMin   = 20
	percentMax   = 100
)

// collectorPercent returns the value of GOGC for that many live bytes.
func collectorPercent(live uint64) int {
	return int(min(percentMax, max(percentMin, 100*garbageBytes/max(live, 1))))
}

// TuneCollector applies collectorPercent from now on, unless GOGC or GOMEMLIMIT is set, and sets
// the runtime's memory limit below the memory of the machine or container, unless GOMEMLIMIT is
// set.
func TuneCollector() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if memory := machineMemory(""); memory > 0 {
		debug.SetMemoryLimit(int64(memoryGoal(memory)))
	}
	if os.Getenv("GOGC") != "" {
		return
	}
	go func() {
		for set := percentMax; ; time.Sleep(collectorLookEvery) {
			if want := collectorPercent(liveBytes()); want != set {
				debug.SetGCPercent(want)
				set = want
			}
		}
	}()
}

// memoryGoal returns the runtime's memory limit for a machine or a container: seven eighths of its
// memory. The rest is for memory that the runtime does not count, such as file pages of the
// embedded server and of checkpoints, which count in a control group.
func memoryGoal(memory uint64) uint64 { return memory - memory/8 }

const collectorLookEvery = 200 * time.Millisecond

// liveBytes returns the bytes that survived the last collection.
func liveBytes() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
