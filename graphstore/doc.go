// Package graphstore keeps a dynamic graph, the labels, predictions and attributes of its vertices,
// and the tracked communities. For each batch it returns exactly the changes.
//
// The graph is undirected and weighted, without self-loops and parallel edges. A
// vertex has a name, a label, a prediction and attributes; a community is a
// multiset of vertices, given by member events or by a rule.
//
// Apply walks over a batch once. It turns events into assertions, each a key and a value, sorts
// them by key and keeps the last one of each key. It compares these with the store and writes the
// difference both into the store and into the Delta. So the Delta is net and sorted without
// bookkeeping, and a batch may repeat and contradict itself.
//
// A Store composes its parts and does little else. Each part is a type that collects the assertions
// of a batch, applies them, compacts itself, and writes and reads its rows of a snapshot:
//
//	ids         vertex names to dense indices and back
//	edges       a slice of neighbours for each vertex, unsorted: an insertion
//	            appends, a removal moves the last entry into the gap; those of
//	            hubs have an index from neighbour to position. A compaction sorts
//	            them into Arrow lists of 65,536 vertices. A vertex that does not
//	            change has a slice of these lists; the first change copies it
//	labelling   labels, predictions and model versions, a column for each
//	attributes  a column of interned values for each key
//	members     communities by vertex and vertices by community, both sorted; the rules
//	            of communities by the attributes they read; hops of ego networks
//
// Parts with entries that can end (edges, labels, predictions) have a field of type ends. The parts
// share a step while one batch is applied.
//
// Columns indexed by vertex are Arrow buffers, and the tables of vertices and neighbours are Arrow
// arrays over them and over the compacted lists: a checkpoint copies the columns, shares the lists,
// and copies no row by itself, nor does an export. Names, roles, degrees and probabilities have
// another form in the table, and are converted. Attributes and memberships are Go slices and maps,
// as are the neighbours of a vertex that changed since the last compaction, and their tables are
// made row by row. The API reads the log out, not these columns.
//
// Invariants, which the tests check by recomputing everything: every edge is once in both runs,
// with one weight; degrees are the exact sums of weights (multiples of 2^-20, below 2^33 in all);
// the units of a prediction sum to 2^30, or there is none; rule-based communities hold exactly the
// vertices that their rule selects; an erased vertex has no data, and nothing refers to its name.
//
// Determinism: the same batches give the same answers. After Compact the answers depend on the
// content alone, and a snapshot holds that form. So a store that was saved and loaded behaves
// exactly like one that was compacted at the same position. No result depends on the iteration
// order of a map.
//
// Bounds: everything that events can make grow has a limit in Config, and an event beyond a limit
// is refused before it changes anything. Rules are bounded by the memberships that they add and by
// the steps that evaluating them takes.
//
// Cost, measured with 168,000 vertices and 6.8 million edges of power-law degree in batches of
// 4,096, on one core of a busy machine: 1.7 million edge events a second with the Delta; 16 live
// bytes an undirected edge with everything, 23 resident. An edge, label or prediction that ends
// takes about 55 bytes more. Compact passes over the vertices and sorts the changed ones.
//
// The package does no I/O, reads no clock and starts no goroutine that outlives a call. It
// knows nothing of estimates. Arrow is imported by columns.go, lists.go,
// vertex_table.go, rows.go and snapshot.go alone.
package graphstore
