// Package communities divides a graph into communities: sets of vertices with more
// edges among themselves than chance would put there.
//
// It answers where tracked communities come from when nobody has named them. The
// method is Leiden (Traag, Waltman and van Eck, 2019), which searches for the
// partition of the greatest modularity
//
//	Q = sum over communities c of  inside(c)/W - g (strength(c)/W)^2
//
// where W is the sum of all strengths (the weighted degrees), inside(c) counts every
// edge within c twice, and g is the resolution: a higher one makes more and smaller
// communities. Leiden was taken rather than Louvain because it splits each community into
// well-connected parts before it goes on, and finds better partitions by it.
//
// One level of the search moves vertices between communities while that raises Q,
// splits every community into well-connected parts, and makes a smaller graph with these parts
// as vertices. A pass goes up level by level until nothing moves; later passes begin with the
// result of the pass before.
//
// Invariants: the partition covers every vertex once; Q never falls from one pass to
// the next; the same graph and seed give the same partition on every architecture.
// Weights are multiples of 2^-20 with a sum below 2^33, so sums of them are exact;
// products are rounded one by one, so that no compiler fuses them with a sum.
//
// Cost: 12 bytes a directed entry and about 100 a vertex at the first level, and a few
// visits of every entry a level: 3.5 s of one core for a pass over 4.7 million edges, and
// 700 MB together with the store. The package does no I/O and reads no clock; it takes its
// random order from a seed.
package communities
