//go:build !linux

package bench

import "time"

var started = time.Now()

// cpuTime is the time on the wall where we have no clock of the thread.
func cpuTime() time.Duration { return time.Since(started) }

// processTime is the time on the wall as well.
func processTime() time.Duration { return time.Since(started) }
