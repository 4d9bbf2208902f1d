// Package auto is the method auto: it reads a community as a histogram of posteriors.
//
// Members are known by the cell that their posterior falls into. The histogram gives two readings,
// selected by place (the mean posterior) and selected by class (the fixed point under prior
// shift); gamma, from the edges inside and the evidence of the histogram, says how far either
// holds. The residual of the labels around corrects a place. The variances are those of the
// members, the residual, the choice of gamma, the coefficients of the posterior and the labels
// behind them; docs/methods.md has the formulas.
//
// Audit labels, which rest on no assumption, are mixed in where there are enough. Memory of the
// last estimate lets a solve start near its end and gives the movement since then.
//
// A Quantifier holds workspaces only. Cost: O(B K²) for B = 8 K cells with members. It does not
// grow with the community.
package auto
