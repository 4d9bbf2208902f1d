// Package parallel divides the work of one owner among the processors. Calls share nothing
// that one of them writes, so no result depends on how many there are.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls f once for every number below n, on as many goroutines as there are
// processors; worker numbers the goroutine. It returns when all have; one needs no goroutine.
func Each(n int, f func(i, worker int)) {
	if n == 1 {
		f(0, 0)
		return
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range min(runtime.GOMAXPROCS(0), n) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i), worker)
			}
		})
	}
	wait.Wait()
}

// Ranges calls f for ranges that make up all numbers below n, one for each processor.
func Ranges(n int, f func(from, to int)) {
	parts := runtime.GOMAXPROCS(0)
	Each(parts, func(i, _ int) { f(n*i/parts, n*(i+1)/parts) })
}
