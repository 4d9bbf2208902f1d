package main

import (
	"math"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"gqlstream/lab/campaign"
)

// fileBytesMax lets no file of the process grow beyond n bytes, as on a disk that is
// full.
func (r *crashRun) fileBytesMax(n uint64) {
	r.t.Helper()
	limit := syscall.Rlimit{Cur: n, Max: math.MaxUint64}
	_, _, errno := syscall.RawSyscall6(
		syscall.SYS_PRLIMIT64, uintptr(r.process.Process.Pid), syscall.RLIMIT_FSIZE,
		uintptr(unsafe.Pointer(&limit)), 0, 0, 0,
	)
	if errno != 0 {
		r.t.Fatal(errno)
	}
}

// A disk that is full for a while, to the log, the outputs and the checkpoints alike,
// must not end the process nor need somebody to start it again, and all that it puts
// out, now and then killed on the way, must be that of an undisturbed run.
// GQLSTREAM_FULLDISKS sets how often it is full (make faults: 100).
func TestRunOutlivesAFullDisk(t *testing.T) {
	rounds := campaign.Size(t, "GQLSTREAM_FULLDISKS", 1)
	for seed := uint64(70); rounds > 0; seed++ {
		r := newCrashRun(t, seed)
		n := min(rounds, 10)
		rounds -= n
		r.fillDisk(n)
		r.compare()
		t.Logf("seed %d: %d times full: %v", seed, n, r.report)
	}
}

func (r *crashRun) fillDisk(rounds int) {
	ctx := r.t.Context()
	r.start()
	r.await(ctx)
	producer := startProducer(ctx, r)
	const small = 40 << 10 // the log gets there in a moment, the messages of the process do not
	full := 0              // in the life of the process
	for i := range rounds {
		r.awaitCheckpoint(ctx)
		pause(ctx, time.Duration(r.rand.Int64N(int64(300*time.Millisecond))))
		r.fileBytesMax(small)
		full++
		r.awaitSaid("the embedded server cannot write", full)
		pause(ctx, time.Duration(r.rand.Int64N(int64(300*time.Millisecond))))
		r.fileBytesMax(math.MaxUint64)
		if i%3 == 2 {
			r.kill()
			r.report.kills++
			r.start()
			full = 0
			continue
		}
		r.awaitSaid("starting again", full)
		r.await(ctx)
		if i%3 == 1 {
			r.kill()
			r.report.kills++
			r.start()
			full = 0
		}
	}
	r.report.messages = producer.finish(r)
	r.kill()
	r.start("--exit-when-drained")
	r.process = nil
	if err := <-r.done; err != nil {
		r.t.Fatalf("seed %d: draining: %v\n%s", r.seed, err, r.said())
	}
	r.tally()
}

// awaitSaid waits until the process has said something so many times.
func (r *crashRun) awaitSaid(text string, times int) {
	r.t.Helper()
	for deadline := time.Now().Add(crashStartMax); ; {
		said := r.said()
		if strings.Count(said, text) >= times {
			return
		}
		select {
		case err := <-r.done:
			r.process = nil
			r.t.Fatalf("seed %d: the process ended: %v\n%s", r.seed, err, said)
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("seed %d: no %q in\n%s", r.seed, text, said)
		}
		pause(r.t.Context(), 5*time.Millisecond)
	}
}
