package quant_test

import (
	"math"
	"testing"

	"gqlstream/quant"
)

// Where the intervals of shares end at zero and one, the interval of their difference must end too,
// and the common error of the labels must cancel.
func TestADifferenceEndsWhereSharesEnd(t *testing.T) {
	a := quant.Estimate{
		Community:  "a",
		Method:     "auto",
		Posterior:  1,
		Prevalence: []float64{.01, .99},
		SE:         []float64{.02, .02},
		Low:        []float64{0, .957},
		High:       []float64{.043, 1},
		Influence:  []float64{.01, -.01},
	}
	b := quant.Estimate{
		Community:  "b",
		Method:     "auto",
		Posterior:  1,
		Prevalence: []float64{.02, .98},
		SE:         []float64{.02, .02},
		Low:        []float64{0, .947},
		High:       []float64{.053, 1},
		Influence:  []float64{.01, -.01},
	}
	d, err := quant.Difference(&a, &b)
	if err != nil {
		t.Fatal(err)
	}
	if se := math.Sqrt(2*.02*.02 - 2*.01*.01); math.Abs(d.SE[0]-se) > 1e-12 ||
		math.Abs(d.SE[1]-se) > 1e-12 {
		t.Errorf("errors %v, want %v", d.SE, se)
	}
	if d.Low[0] < -.053-1e-12 || d.High[0] > .043+1e-12 || math.Abs(d.Low[0]+d.High[1]) > 1e-12 ||
		math.Abs(d.High[0]+d.Low[1]) > 1e-12 {
		t.Errorf("interval %v to %v", d.Low, d.High)
	}
}
