package bench

import "time"

// stopwatch adds up processor time and takes out what reading the clock costs.
type stopwatch struct {
	spent time.Duration
	cost  time.Duration // of one start and stop
}

// newStopwatch measures what the clock costs. The thread must be locked.
func newStopwatch() *stopwatch {
	const reads = 1000
	s := &stopwatch{}
	for range reads {
		s.time(func() {})
	}
	s.cost, s.spent = s.spent/reads, 0
	return s
}

// time adds the time of f.
func (s *stopwatch) time(f func()) {
	began := cpuTime()
	f()
	s.spent += cpuTime() - began - s.cost
}

// take returns the time so far and starts anew.
func (s *stopwatch) take() time.Duration {
	spent := max(s.spent, 1)
	s.spent = 0
	return spent
}

// micros returns d in microseconds for each of n.
func micros(d time.Duration, n int) float64 { return d.Seconds() * 1e6 / float64(n) }
