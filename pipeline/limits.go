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

// limitLog sees to it that the log has limits for what its events may make a run hold:
// those that this machine's memory bears, where it has none and the configuration leaves
// some open. It says which hold.
func limitLog(
	ctx context.Context,
	js jetstream.JetStream,
	log string,
	c incremental.Config,
	report *slog.Logger,
) error {
	configured, memory := c.Limits, machineMemory("")
	var derived event.Limits // with unknown memory: what the indices can count
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

const fillWarned = 0.9 // of a limit: from there on it is said

// watchFill says once of each limit that it is nearly reached, and returns all.
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

// machineMemory returns the bytes of memory that the process may take: those of the machine,
// of its container, or of the runtime's memory limit, whichever is least; 0 if none is known.
// root is the root of the files that are read, "" but in tests.
func machineMemory(root string) uint64 {
	return leastMemory(append(containerMemory(root), systemMemory(),
		uint64(debug.SetMemoryLimit(-1))))
}

// memoryUnlimited is no amount of memory: control groups of version 1 and the runtime write "no
// limit" as a number near the largest.
const memoryUnlimited = 1 << 60

// leastMemory returns the least of several limits, without those that are 0 or unlimited; 0 if
// there is no other.
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

// containerMemory returns the limits of the control groups that the process is in, of
// either version; "max" is none.
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
		// the groups above bind as well; in a container ours may be the root
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

// TuneCollector applies collectorPercent from now on, unless GOGC or GOMEMLIMIT is set, and lets
// the collector keep the process below the memory of its machine or container, unless GOMEMLIMIT
// says where.
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

// memoryGoal returns the runtime's memory limit on a machine or in a container: seven eighths of
// its memory. The rest is for what the runtime does not count, such as the pages of files that the
// embedded server and checkpoints write, which a control group counts.
func memoryGoal(memory uint64) uint64 { return memory - memory/8 }

const collectorLookEvery = 200 * time.Millisecond

// liveBytes returns the bytes that the last collection left.
func liveBytes() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
