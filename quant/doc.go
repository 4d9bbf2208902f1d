// Package quant is the mathematics of quantification: it turns the tallies of a
// community into the prevalence of each class, with an interval and flags.
//
// A Statistics holds, for cells z (what the classifier says of a vertex, alone or
// with its neighbours) and classes i, the mean profile p_z of the unlabelled
// members and the sums N, A1, A2 of the calibration labels, weighted by powers of
// the kernel mass a. Every weighting w = r a + s of the labels follows from them,
//
//	S1 = r A1 + s N,  S2 = r^2 A2 + 2 r s A1 + s^2 N,  C_zi = S1_zi / sum_z S1_zi,
//
// so method, preset and lambda are choices of the reader. A method finds the shares q on the
// simplex for which Cq is nearest to p, by least squares or by likelihood, and their variances by
// the delta method; diff adds the mean weighted residual of the labels to p; ml averages likelihood
// answers over lambda. auto reads posteriors of the single members in place of cells; see
// Posterior. Adjusted counts: Gart and Buck (1966), Forman (2008). Weights and neighbourhood cells:
// Damke and Hüllermeier (2025). Intervals, ml, diff in this form and auto are ours; docs/methods.md
// has the formulas with their sources.
//
// Invariants: shares are a distribution, each interval holds its share, nothing
// is NaN, and equal statistics give equal bits whatever the Solver did before.
// Shares are fractions, matrices row-major with cells as rows, classes count
// from 0. A poor answer is no error: it carries flags (FlagDocs).
//
// Cost at K = 10 on K^2 cells: about 0.1 ms for an adjusted count with interval and
// flags, 0.6 ms for ml, which is seven of them, some 2 us a member for auto; a pass
// over the labels for exact variances adds some 0.5 us per label and lambda.
//
// The package does not gather statistics, knows no graph, and reads no clock; its
// interval is statistical and says nothing of the kernel's certificate.
package quant
