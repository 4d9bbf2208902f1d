// Package diffusion keeps personalised-PageRank fields current while edges,
// weights and sources change.
//
// A field is the solution z of (D - (1-a) A) z = a m, where A is the weighted
// adjacency with a unit self-loop on every vertex, D its row sums d, m the source
// (multiplicity per vertex, M its sum) and a the teleport probability. Read
// d(v) z(v) as the mass of walks that start in m and stop at v.
//
// Invariant, after every call, for every vertex v (w(v,v) = 1):
//
//	R(v) = a m(v) - d(v) z(v) + (1-a) * sum over x of w(v,x) z(x)
//
// and Certificate = sum |R| / (a M), at most Tolerance after an Update, bounds the L1 error of the
// normalised field: the columns of A D^-1 sum to one, so the inverse of I - (1-a) A D^-1 has an L1
// norm of 1/a. Bounds of our own rounding errors are part of the certificate.
//
// The method is local push (Andersen, Chung and Lang, FOCS 2006), with signed residuals tracked
// through changes of the graph (Ohsaka, Maehara and Kawarabayashi, KDD 2015; Zhang, Lofgren and
// Goel, KDD 2016) and repaired a batch at a time (Guo, Li, Sha and Tan, VLDB 2017). Four parts are
// ours:
//
//   - In the form above R is affine in the graph, so a batch of insertions, deletions and new
//     weights is one sum in any order.
//   - Residuals stay while the certificate allows it, and then only the largest are pushed; see
//     reachTolerance.
//   - The constant vector is an eigenvector ((D - (1-a) A) 1 = a d), and a push reduces it by a
//     factor of 1-a only. So the uniform error of a growing graph is removed in O(n) by a shift;
//     see shift.go.
//   - Over-relaxation replaces pushes at a cold start and after a batch that changes most of the
//     graph; see block.go.
//
// Cost of an edge: O(1) and the pushes it causes; no push method bounds that in the worst case
// (Jayaram et al., 2024), so Update falls back on iteration when a sweep has cost a quarter of a
// recompute. Memory: 32 to 44 bytes a vertex and field.
//
// A Dual replaces the fields of many communities. It solves the transposed system for L functions
// on the vertices, once for all sources: y(u) is the mean of a function over the vertices where a
// walk from u stops. So the sum of a function over a field is the sum of y over the source. A dual
// gives sums of those functions only: no mass of a single vertex, and no quantity that is not
// linear in the source.
//
//	            field                             dual
//	unknowns    mass by vertex, one source        L values by vertex, all sources
//	an edge     O(1) and pushes, for every field  O(L) and pushes, once
//	a member    a push                            nothing
//	a label     nothing                           pushes
//	error       sum over vertices, over M         of each value, largest
//	bar         moves with the live certificate   stands at the tolerance
//
// A field is owned by one goroutine at a time and shares nothing with others, so
// fields of one View may be updated side by side. Equal calls give equal bits. A
// field does not normalise by M and knows nothing of labels or communities.
package diffusion
