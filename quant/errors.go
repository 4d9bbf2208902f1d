package quant

import (
	"fmt"
	"math"
)

// AbsoluteError returns AE, the mean over the classes of |estimate - truth|.
// It panics if the lengths differ or are 0.
func AbsoluteError(estimate, truth []float64) float64 {
	mustMatch(estimate, truth)
	var s float64
	for i, x := range truth {
		s += math.Abs(estimate[i] - x)
	}
	return s / float64(len(truth))
}

// RelativeAbsoluteError returns RAE, the mean over the classes of |estimate - truth| / truth, both
// smoothed first: (x + e)/(1 + K e) with e = 1/(2T), T the size of the community (Forman, 2008; as
// QuaPy does). It panics if the lengths differ or are 0, or size is not positive.
func RelativeAbsoluteError(estimate, truth []float64, size float64) float64 {
	mustMatch(estimate, truth)
	if !(size > 0) {
		panic(fmt.Sprintf("quant: relative error of a community of %v members", size))
	}
	smooth := 1 / (2 * size)
	var s float64
	for i, x := range truth {
		s += math.Abs(estimate[i]-x) / (x + smooth)
	}
	return s / float64(len(truth))
}

// mustMatch panics on shares of different classes.
func mustMatch(estimate, truth []float64) {
	if len(estimate) != len(truth) || len(truth) == 0 {
		panic(fmt.Sprintf("quant: error of %d shares against %d", len(estimate), len(truth)))
	}
}
