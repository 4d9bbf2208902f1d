package quant_test

import (
	"fmt"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// exampleStatistics is a community of 100 members, 70 of them predicted as class 0, and 100 labels:
// the classifier is right for 40 of 50 in class 0, and for 45 of 50 in class 1.
func exampleStatistics() *stats.Statistics {
	counts := []float64{40, 5, 10, 45} // rows: predictions
	hard := &stats.Cells{
		Z:  2,
		P:  []float64{.7, .3},
		N:  counts,
		A1: make([]float64, 4),
		A2: make([]float64, 4),
	}
	return &stats.Statistics{
		K: 2, Members: 100, Profiled: 100, KernelSum: 100, Anchored: make([]float64, 2),
		ClassN: []float64{50, 50}, ClassA1: make([]float64, 2), ClassA2: make([]float64, 2),
		Hard: hard, Soft: hard,
	}
}

func ExampleSolver_Estimate() {
	var w quant.Solver // keeps its memory from one community to the next
	var e quant.Estimate
	for _, m := range []quant.Method{quant.CC, quant.ACC, quant.Diff} {
		if err := w.Estimate(&e, exampleStatistics(), quant.Options{Method: m}); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%-4s %.3f se %.3f flags %v\n", e.Method, e.Prevalence, e.SE, e.Flags)
	}
	// Output:
	// cc   [0.700 0.300] se [0.046 0.046] flags []
	// acc  [0.857 0.143] se [0.090 0.090] flags []
	// diff [0.750 0.250] se [0.054 0.054] flags [no-label-reachable]
}

func ExampleSolver_SEChange() {
	var w quant.Solver
	var e quant.Estimate
	s := exampleStatistics()
	if err := w.Estimate(&e, s, quant.Options{Method: quant.ACC}); err != nil {
		fmt.Println(err)
	}
	before := w.Snapshot()
	s.Hard.P = []float64{.65, .35} // five members left, five others joined
	if err := w.Estimate(&e, s, quant.Options{Method: quant.ACC}); err != nil {
		fmt.Println(err)
	}
	change := w.SEChange(before, stats.Turnover{Stayed: 95, Joined: 5, Left: 5})
	fmt.Printf("se %.3f, of the change %.3f\n", e.SE, change)
	// Output: se [0.085 0.085], of the change [0.019 0.019]
}

func ExampleMethods() {
	fmt.Println(quant.Methods()[:4])
	// Output: [mlpe cc pcc acc]
}

func ExampleMethod_Needs() {
	softPair, hard, hardPair := quant.SISNACC.Needs()
	fmt.Println(softPair, hard, hardPair)
	// Output: true false false
}

func ExampleMethod_WeighsCells() {
	fmt.Println(quant.SIS.WeighsCells(), quant.PACC.WeighsCells(), quant.Auto.WeighsCells())
	// Output: true false false
}

func ExampleParseMethods() {
	methods, err := quant.ParseMethods("pacc,sis-nacc")
	fmt.Println(methods, err)
	_, err = quant.ParseMethods("magic")
	fmt.Println(err != nil)
	// Output:
	// [pacc sis-nacc] <nil>
	// true
}

func ExampleDefaultOptions() {
	fmt.Printf("%+v\n", quant.DefaultOptions())
	// Output: {Method:auto Preset:density Lambda:0.9 Confidence:0.9 Simultaneous:false}
}

func ExampleOptions_Validate() {
	fmt.Println(quant.Options{Method: quant.SIS, Lambda: 2, Confidence: 90}.Validate())
	// Output:
	// lambda: 2 is not between 0 and 1
	// confidence: 90 is not between 0 and 1
}

func ExampleFlagName() {
	fmt.Println(quant.FlagName("ill-conditioned:2~5"))
	// Output: ill-conditioned
}

func ExampleFlagDocs() {
	for _, d := range quant.FlagDocs()[:1] {
		fmt.Printf("%s: %s\n%s\n", d.Name, d.Meaning, d.Action)
	}
	// Output:
	// thin: fewer than 30 effective calibration labels in the classes named
	// label more vertices of these classes near the community, or lower lambda
}
