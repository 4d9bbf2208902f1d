//go:build !linux

package bench

import "runtime"

// resetPeak does nothing: the runtime's figure only grows.
func resetPeak() error { return nil }

// peakResident returns what the runtime has asked the system for.
func peakResident() (float64, error) { return resident() }

// resident returns the same: what is resident now is not known.
func resident() (float64, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys), nil
}
