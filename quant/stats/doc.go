// Package stats has the input and the output of a method of quantification, for one community.
//
// A Statistics holds, for cells z (the prediction of a vertex, alone or with those of its
// neighbours) and classes i, the mean profile p_z of the unlabelled members and the sums N, A1, A2
// of the calibration labels, weighted by powers of the kernel mass a. Every Weighting w = r a + s
// of the labels follows from them,
//
//	S1 = r A1 + s N,  S2 = r^2 A2 + 2 r s A1 + s^2 N,
//
// so that method, preset and lambda are choices of the reader. Posterior is the part that auto
// reads, Audit the audit labels. An Answer is the shares of the unlabelled members with their
// variances, before labelled members are counted in; Memory holds the parts of one answer that auto
// keeps for the next.
//
// Shares are fractions, matrices row-major with cells as rows, classes count from 0. The package
// does not gather statistics; package tally does.
package stats
