package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the processor time of this thread, to which a goroutine must be locked.
func cpuTime() time.Duration { return readClock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processTime returns the processor time of all threads of the process.
func processTime() time.Duration { return readClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func readClock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err) // every Linux has both clocks
	}
	return time.Duration(t.Nano())
}
