package quant

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// AbsoluteError returns AE, the mean over the classes of |estimate - truth|.
// It panics if the lengths differ or are 0.
func AbsoluteError(estimate, truth []float64) float64 {
	if len(truth) == 0 {
		panic("quant: error of no shares")
	}
	return floats.Distance(estimate, truth, 1) / float64(len(truth))
}

// RelativeAbsoluteError returns RAE, the mean over the classes of |estimate - truth| / truth, both
// smoothed first: (x + e)/(1 + K e) with e = 1/(2T), T the size of the community (Forman, 2008; as
// QuaPy does). It panics if the lengths differ or are 0, or size is not positive.
func RelativeAbsoluteError(estimate, truth []float64, size float64) float64 {
	if len(estimate) != len(truth) || len(truth) == 0 || !(size > 0) {
		panic(fmt.Sprintf("quant: relative error of %d shares against %d of %v members", len(estimate), len(truth), size))
	}
	smooth := 1 / (2 * size)
	var s float64
	for i, x := range truth {
		s += math.Abs(estimate[i]-x) / (x + smooth)
	}
	return s / float64(len(truth))
}
