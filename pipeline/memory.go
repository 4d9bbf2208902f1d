package pipeline

import (
	"fmt"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// machineMemory returns the bytes of memory that the process may take: those of the machine,
// of its container, or of GOMEMLIMIT, whichever is least; 0 if none is known.
func machineMemory(root string) uint64 {
	const none = math.MaxInt64 // the value of GOMEMLIMIT where there is none
	least := uint64(none)
	for _, bytes := range append(containerMemory(root), meminfoTotal(root), uint64(debug.SetMemoryLimit(-1))) {
		if bytes > 0 {
			least = min(least, bytes)
		}
	}
	if least == none {
		return 0
	}
	return least
}

func meminfoTotal(root string) (kib uint64) {
	text, _ := os.ReadFile(root + "/proc/meminfo")
	_, rest, _ := strings.Cut(string(text), "MemTotal:")
	_, _ = fmt.Sscanf(rest, "%d kB", &kib)
	return kib << 10
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
		for ; ; group = path.Dir(group) { // the groups above bind as well; in a container ours may be the root
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
