package solve_test

import (
	"fmt"

	"gqlstream/quant/solve"
)

// Of class 0, .8 is called 0; of class 1, .1 is.
var confusion = solve.Columns{Z: 2, K: 2, C: []float64{.8, .2, .1, .9}}

func ExampleColumns_LeastSquares() {
	fmt.Printf("%.3f\n", confusion.LeastSquares([]float64{.7, .3}, []float64{.5, .5}).Q)
	// Output: [0.857 0.143]
}

func ExampleColumns_Likelihood() {
	q := []float64{.5, .5}
	value, gap := confusion.Likelihood(q, []float64{.7, .3})
	fmt.Printf("%.3f, log-likelihood %.4f a member, optimal: %v\n", q, value, gap < 1e-10)
	// Output: [0.857 0.143], log-likelihood -0.6109 a member, optimal: true
}

func ExampleProjectSimplex() {
	fmt.Printf("%.2f\n", solve.ProjectSimplex(make([]float64, 3), []float64{1.2, .2, -.1}))
	// Output: [1.00 0.00 0.00]
}
