package stats_test

import (
	"fmt"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

func ExampleAudit() {
	a := stats.NewAudit(2)
	a.Labels = 20
	p, of0, of1 := []float64{.5, .5}, []float64{1, 0}, []float64{0, 1} // all are predicted alike
	a.Expect(of0, p, []float64{.5, 0}, 1, .2, 16)
	a.Expect(of1, p, []float64{0, .5}, 1, .2, 4)
	var w quant.Solver
	var e quant.Estimate
	err := w.Estimate(&e, a.Of(100, p), quant.Options{Method: quant.Audits})
	fmt.Printf("%.2f [%.2f, %.2f] %v\n", e.Prevalence[1], e.Low[1], e.High[1], err)
	// Output: 0.20 [0.10, 0.36] <nil>
}
