package pipeline

import "golang.org/x/sys/unix"

// systemMemory returns the bytes of memory of the machine; 0 if unknown. The system call also works
// where /proc/meminfo is hidden, as with systemd's ProcSubset=pid.
func systemMemory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}
