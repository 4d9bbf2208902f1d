// Package solve has the numerical methods of quantification. It knows numbers alone: no community,
// no label and no class by name.
//
// Columns are the distributions of K classes over Z cells. LeastSquares and Likelihood find their
// mixture nearest to a profile. Mixture is the likelihood of weighted rows, with a power
// of the shares. Quadratic is a strictly convex program over the simplex, which both solve. The
// rest is algebra on dense matrices, row-major in slices, over gonum.
//
// Invariants: a solution is on the simplex to rounding, and equal inputs give equal bits. A matrix
// that is not positive definite by rounding counts as the identity. Cost: some five rounds of O(Z
// K²), and O(K³) for a program.
package solve
