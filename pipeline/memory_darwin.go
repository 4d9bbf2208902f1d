package pipeline

import "golang.org/x/sys/unix"

// systemMemory returns the bytes of memory of the machine; 0 if it is not known.
func systemMemory() uint64 {
	bytes, _ := unix.SysctlUint64("hw.memsize")
	return bytes
}
