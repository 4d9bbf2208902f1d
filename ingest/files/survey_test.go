package files

import (
	"math"
	"testing"
)

// Counts of a survey are exact up to sampleMax elements, and within a few percent beyond.
func TestSamplesEstimateCounts(t *testing.T) {
	for _, n := range []int{10, sampleMax, 4 * sampleMax} {
		s := newSample()
		for i := range n {
			key := mix(uint64(i), 7)
			s.say(key, 1, 0)
			if i%2 == 0 {
				s.say(key, 1, 0)
			}
			if i%4 == 0 {
				s.say(key, 2, 0)
			}
		}
		things, again, other := s.totals()
		for _, c := range []struct{ got, want int }{
			{things, n},
			{again, (n + 1) / 2},
			{other, (n + 3) / 4},
		} {
			off := math.Abs(float64(c.got)/float64(c.want) - 1)
			if n <= sampleMax && off > 0 ||
				off > .04 { // seven standard errors of the smallest sample
				t.Errorf("of %d: %d, want %d", n, c.got, c.want)
			}
		}
	}
}
