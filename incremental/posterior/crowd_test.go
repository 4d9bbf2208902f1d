package posterior

import "testing"

// A member of the largest multiplicity that comes and goes must not make a crowd look as if nothing had happened to it.
func TestTheLargestMultiplicityTurnsACrowd(t *testing.T) {
	const classes, most = 2, 1<<32 - 1
	even := []float64{1, 1}
	c := &Crowd{factors: [2][]float64{even, even}, was: make([]int64, classes), is: make([]int64, classes), own: &own{}}
	for i := range c.sums {
		c.sums[i] = make([]int64, classes)
	}
	pi := []float64{.4, .6}
	for range 100 {
		c.change(0, 1, nil, pi)
	}
	c.turned = 0
	c.change(0, most, nil, pi)
	c.change(most, 0, pi, nil)
	if _, all, squares, turned := c.Means(); all != 100 || squares != 100 || turned < most {
		t.Errorf("%v members, squares %v, of which %v turned", all, squares, turned)
	}
}
