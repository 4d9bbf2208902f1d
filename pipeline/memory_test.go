package pipeline

import (
	"os"
	"path/filepath"
	"testing"
)

// The least of what machine and container have must count, whatever version the control
// groups are of and however deep ours is; and where nothing is said there is no limit.
func TestMemoryIsTheLeastThatAnybodyGrants(t *testing.T) {
	const meminfo = "MemTotal:       1000 kB\nMemFree:  10 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"nothing is said":  {nil, 0},
		"a machine":        {map[string]string{"proc/meminfo": meminfo}, 1000 << 10},
		"no limit":         {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 1000 << 10},
		"a container":      {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4096\n"}, 4096},
		"a group above":    {map[string]string{"proc/self/cgroup": "0::/a.slice/b\n", "sys/fs/cgroup/a.slice/memory.max": "8192\n"}, 8192},
		"the old version":  {map[string]string{"proc/self/cgroup": "3:cpu:/x\n2:memory:/y\n", "sys/fs/cgroup/memory/y/memory.limit_in_bytes": "512\n"}, 512},
		"more than a host": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9000000000\n"}, 1000 << 10},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := machineMemory(root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
