// Package quant turns the statistics of a community into a record: the prevalence of each class,
// with an interval and flags.
//
// A quantifier is a method. Package adjusted has those of the paper, package auto has auto; both
// rest on package solve, which knows no community, and meet in package stats: Statistics in, Answer
// out. The table in method.go names them. This package chooses the method, counts the labelled
// members in, makes intervals and flags, and says how a record differs from the one before. A new
// method is a type with Answer, a row of the table, and a name.
//
// Invariants: shares are a distribution, each interval holds its share, nothing is NaN, and equal
// statistics give equal bits, also from a Solver that was used before. A poor answer is no error:
// it carries flags (FlagDocs).
//
// The package does not gather statistics, knows no graph, and reads no clock; its interval is
// statistical and says nothing of the kernel's certificate.
package quant
