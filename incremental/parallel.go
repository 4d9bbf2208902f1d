package incremental

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls f once for every number below n, on as many goroutines as there are
// processors; worker numbers the goroutine. It returns when all calls have. Calls share
// nothing that one of them writes, so the result does not depend on how many there are.
func parallel(n int, f func(i, worker int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			f(i, 0)
		}
		return
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i), worker)
			}
		})
	}
	wait.Wait()
}
