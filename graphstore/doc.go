// Package graphstore holds a dynamic graph, what is known of its vertices, and
// the tracked communities, and says exactly what a batch changed.
//
// The graph is undirected and weighted, without self-loops and parallel edges. A
// vertex has a name, a label, a prediction and attributes; a community is a
// multiset of vertices, given by member events or by a rule.
//
// One batch makes one walk. Apply turns its events into assertions, each a key and
// what is said of it. It sorts them, lets the last about each key stand, compares that
// with the store, and writes the difference both into the store and into the Delta. So
// the Delta is net and sorted without bookkeeping, and a batch may repeat and
// contradict itself.
//
// A Store composes its parts and does little else. Each part is a type that is told what
// a batch asserts, applies it, compacts itself, and writes and reads its
// rows of a snapshot:
//
//	ids         vertex names to dense indices and back
//	edges       a slice of neighbours for each vertex, unsorted: an insertion
//	            appends, a removal moves the last entry into the gap; those of
//	            hubs have an index from neighbour to position
//	labelling   labels, predictions and model versions, a column for each
//	attributes  a column of interned values for each key
//	members     communities by vertex and vertices by community, both sorted; the rules
//	            of communities by the attributes they read; hops of ego networks
//
// Parts with a time to live in them keep ends, which knows when. What the parts share
// while one batch is applied is a step.
//
// The columns, which grow with the vertices, are Arrow buffers; what grows with edges, names,
// attributes and memberships are slices and maps of the language's.
//
// Invariants, which the tests prove from nothing: every edge stands once in both runs
// with one weight; degrees are the exact sums of weights (multiples of 2^-20 below
// 2^33 in all); a prediction's units sum to 2^30 or there is none; communities of
// everyone, by attribute, by expression and of ego networks hold exactly the vertices that
// their rule says; an erased vertex has nothing, and nothing refers to its name.
//
// Determinism: the same batches give the same answers. Compact makes those a function
// of the content alone, and a snapshot holds that form, so a store that was saved
// and loaded goes on exactly as the one that was not, provided that one compacted
// at the same position. Maps are never iterated where order could show.
//
// Bounds: everything that events can make grow has a limit in Config, and what goes
// beyond is refused before it changes anything. Rules are bounded by the memberships that
// they bring and by the steps that evaluating all of them takes.
//
// Cost, measured with 168,000 vertices and 6.8 million edges of power-law degree that
// came in batches of 4,096, on one core of a busy machine: 1.7 million edge events
// a second with the Delta, 16 live bytes an undirected edge with everything, and 23
// resident. An edge, label or prediction that ends takes about 55 bytes more, and nothing
// where none does. Compact passes over the vertices and sorts what has changed.
//
// The package does no I/O, reads no clock and starts no goroutine that outlives a call. It
// knows nothing of estimates. Arrow is imported by columns.go, rows.go and
// snapshot.go alone.
package graphstore
