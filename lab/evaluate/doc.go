// Package evaluate answers, on a user's own labelled graph, which method to use
// and whether to believe its interval.
//
// It hides the labels of all but a calibration share of the labelled vertices, draws communities
// from the hidden ones under known kinds of shift, estimates each with the same core that serves
// live streams, and compares with the truth. The protocols are those of Damke and Hüllermeier
// (NeurIPS 2025, section 5.1): prior shift with Zipf targets (pps), breadth-first balls (bfs) and
// random walks (rw). Further shifts break the assumptions: members picked by their predictions
// (cov), by their degree (degree), of one class alone (one); and the user's own shifts: groups by
// the value of a vertex attribute (group:KEY) and the tracked communities of the data (members).
// Labels with the role train stay known throughout and are never drawn.
//
// Walks and balls cross vertices of every kind and collect hidden ones. Unlike the
// paper's, communities of fewer than MembersMin different vertices are drawn again,
// because run publishes nothing about them; MembersMin 1 keeps them all. A ball in
// a small component is smaller than Size; nothing is repeated to fill it.
//
// Errors are AE, the mean over classes of |q - truth|, and RAE, the same relative
// to the truth with both smoothed by 1/(2T), T the community's size. Coverage is the share of
// classes and communities with the truth in the interval. Truth is
// the realised share among the members, not a rate behind it.
//
// Invariant: the same graph, configuration and seed give the same report. Splits
// and draws come from PCG generators seeded by (seed, split, protocol), so asking
// for another method, kernel or protocol does not change the communities of one.
// Cost: the files are read once; a split feeds the graph to a fresh core and
// solves every community once.
package evaluate
