package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// resetPeak makes peakResident count from here on.
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakResident returns the most bytes of memory that the process has held at once.
func peakResident() (float64, error) { return status("VmHWM:") }

// resident returns what it holds now.
func resident() (float64, error) { return status("VmRSS:") }

// status returns an entry of the process's status, in bytes.
func status(name string) (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(status, []byte(name))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("/proc/self/status has no %s", name)
	}
	kib, err := strconv.ParseFloat(string(fields[0]), 64)
	return kib * 1024, err
}
