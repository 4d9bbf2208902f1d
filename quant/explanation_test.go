package quant

import (
	"math"
	"testing"
)

// A change is divided into movement, revision, changes too few to be named, and our own error.
func TestExplanationDividesTheChange(t *testing.T) {
	var x Explanation
	x.From.Published, x.To.Published = []float64{0.3, 0.7}, []float64{0.45, 0.55}
	moved := map[string]bool{
		CauseJoined: true, CauseLeft: true, CausePredictions: true, CauseAge: true,
		CauseEdges: true, CauseAttributes: true,
		CauseModel: false, CauseLabels: false, CauseCoefficients: false, CauseGamma: false,
	}
	want := map[bool]float64{}
	for kind, happened := range moved {
		part := 0.01 * float64(len(kind)%5)
		want[happened] += part
		x.Causes = append(x.Causes, Cause{Kind: kind, Contribution: []float64{part, -part}})
	}
	x.Causes = append(x.Causes, Cause{Kind: CauseFew, Contribution: []float64{0.002, -0.002}})
	x.Settle()
	rest := 0.15 - want[true] - want[false] - 0.002
	for k, sign := range []float64{1, -1} {
		for name, difference := range map[string]float64{
			"moved": x.Moved[k] - sign*want[true], "revised": x.Revised[k] - sign*want[false],
			"numerical": x.Numerical[k] - sign*rest, "change": x.Change[k] - sign*0.15,
		} {
			if math.Abs(difference) > 1e-12 {
				t.Errorf("class %d: %s is off by %v", k, name, difference)
			}
		}
	}
}
