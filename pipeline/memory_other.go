//go:build !linux && !darwin

package pipeline

// systemMemory returns 0: the memory of the machine is not known.
func systemMemory() uint64 { return 0 }
