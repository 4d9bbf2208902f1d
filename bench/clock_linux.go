package bench

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the processor time of this thread. lockThread makes it
// meaningful.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(t.Nano())
}

// lockThread keeps the goroutine on its thread until the returned function is called.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
