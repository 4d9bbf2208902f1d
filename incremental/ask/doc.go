// Package ask draws the members of communities whose labels say most about them, each with
// the probability pi that it was drawn, and says beforehand what the labels will buy.
//
// The members of a community are divided into strata: the class that the classifier finds
// the most likely, by terciles of how sure it is. A member of stratum h is drawn with a
// probability in proportion to its multiplicity times
//
//	1/2 + S_h / 2 S,
//
// S_h the spread of label less prediction there, as the calibration labels show it, and S its
// mean: half of the labels go to the members evenly, half to where they say more (Neyman).
// Cleverer draws gain a few percent and can lose everything, because the spread is a guess: the
// gain is the regression on the predictions in quant.Audits.
//
// Several communities are drawn from together. Each wants the same number of labels, and pi of a
// vertex is the largest that one of them wants, so that every label counts for every community
// it lies in. For a target width each wants as many as it needs.
// Members that were audited before are taken over with the pi they would have had in this
// draw, and only the others of their cell are drawn.
//
// Within a cell (the same strata of the same communities) the draw is systematic, in an order
// that the seed, the position of the log and the id decide: the sums of the probabilities
// cross a whole number wherever a vertex is drawn.
//
// What labels will buy is quant's own answer to the sums that such a draw has on average. Only
// OfState does I/O. Cost: O(n log n + n K) for n members.
package ask
