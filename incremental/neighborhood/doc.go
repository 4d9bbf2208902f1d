// Package neighborhood keeps, for every vertex, the sum of its neighbours'
// predictions and of their votes, while edges and predictions change.
//
// It is the state behind neighbourhood-aware profiles (NACC; Damke and Hüllermeier, NeurIPS 2025,
// section 4.2): the soft profile reads the mean of the neighbours' probabilities, the hard profile
// their majority class. The vertex itself does not vote, an edge counts once for any weight, and a
// neighbour without a prediction does not vote.
//
// Invariant, after every Update, for every vertex v and class j, with N(v) the
// neighbours of v and u_j the units of 2^-30 of u's prediction:
//
//	sum(v, j)  = sum over u in N(v) of u_j
//	hard(v, j) = number of u in N(v) whose largest unit is j (lowest on ties)
//	votes(v)   = number of u in N(v) that have a prediction
//
// All are integers, so after any history they equal a recount bit for bit.
//
// Cost: O(K) for an edge, O(degree K) for a changed prediction. Memory: 8K + 12 bytes a vertex, and
// 8K more when hard votes are kept. It knows nothing of labels and communities.
package neighborhood
