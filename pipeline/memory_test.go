package pipeline

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"gqlstream/internal/testfile"
)

// All limits of the control groups must be found, whatever their version and however deep
// the process is in them. The least limit counts, and "no limit" is none in each of its
// forms.
func TestMemoryIsTheLeastThatAnybodyGrants(t *testing.T) {
	const (
		unlimited1 = "9223372036854771712\n" // as version 1 writes it
		groups1    = "3:cpu:/x\n2:memory:/y\n"
		limit1     = "sys/fs/cgroup/memory/y/memory.limit_in_bytes"
		root1      = "sys/fs/cgroup/memory/memory.limit_in_bytes"
		groups2    = "proc/self/cgroup"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"nothing is said": {nil, 0},
		"no limit": {map[string]string{
			groups2:                    "0::/\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 0},
		"a container": {map[string]string{
			groups2:                    "0::/\n",
			"sys/fs/cgroup/memory.max": "4096\n",
		}, 4096},
		"a group above": {map[string]string{
			groups2:                      "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "8192\n",
		}, 8192},
		"version 1": {map[string]string{groups2: groups1, limit1: "512\n"}, 512},
		"version 1, no limit": {map[string]string{
			groups2: groups1, limit1: unlimited1,
			root1: unlimited1,
		}, 0},
		"version 1, above": {map[string]string{
			groups2: groups1, limit1: unlimited1,
			root1: "512\n",
		}, 512},
		// In a container with the control groups of the host, ours is at the root.
		"version 1, mounted": {
			map[string]string{groups2: "2:memory:/docker/1f\n", root1: "512\n"},
			512,
		},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			testfile.Write(t, path, text)
		}
		if got := leastMemory(containerMemory(root)); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

// The memory of the machine must be known without any file, as where /proc/meminfo is hidden.
func TestMemoryOfTheMachineIsKnownWithoutFiles(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the memory of the machine is known on Linux and macOS")
	}
	if got := machineMemory(t.TempDir()); got < 128<<20 || got > 1<<50 {
		t.Errorf("the machine has %d bytes", got)
	}
}

// Without GOMEMLIMIT the runtime's limit must follow the memory found, and limits of events with
// it.
func TestMemoryLimitFollowsTheMemoryFound(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "off") // no goroutine that outlives the test
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	found := machineMemory("")
	TuneCollector()
	if got := uint64(debug.SetMemoryLimit(-1)); got != memoryGoal(found) ||
		machineMemory("") != got {
		t.Errorf("the limit is %d of %d found, and %d may be taken", got, found, machineMemory(""))
	}
	debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "1GiB")
	if TuneCollector(); debug.SetMemoryLimit(-1) != before {
		t.Error("GOMEMLIMIT is overridden")
	}
}
