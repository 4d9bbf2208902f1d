// Package evaluate answers, on a user's own labelled graph, which method to use
// and whether to believe its interval.
//
// It hides the labels of all but a calibration share of the labelled vertices,
// draws communities from the hidden ones under known kinds of shift, estimates
// each with the same core that serves live streams, and compares with the truth.
// The protocols are those of Damke and Hüllermeier (NeurIPS 2025, section 5.1):
// prior shift with Zipf targets (pps), breadth-first balls (bfs) and random walks
// (rw); and groups by the value of a vertex attribute, where the data have any.
//
// Invariant: the same graph, configuration and seed give the same report. Splits
// and draws come from PCG generators seeded by (seed, split, protocol).
//
// Errors are AE, the mean over classes of |q - truth|, and RAE, the same relative
// to the truth with both smoothed by 1/(2T), T the community's size. Coverage is
// the share of classes and communities whose truth lies in the interval.
package evaluate
