package diffusion

import (
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// cpuTime returns the processor time of this thread, which a busy machine does
// not stretch as it does the time on the wall. lockThread makes it meaningful.
func cpuTime() time.Duration {
	const threadClock = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadClock,
		uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(t.Nano())
}

func lockThread(b *testing.B) {
	runtime.LockOSThread()
	b.Cleanup(runtime.UnlockOSThread)
}
