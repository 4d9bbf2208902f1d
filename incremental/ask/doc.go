// Package ask draws members of communities to label, with a known probability pi each, and predicts
// the width of the interval with their labels.
//
// The members of a community are divided into strata: the class that the classifier finds
// the most likely, by terciles of how sure it is. A member of stratum h is drawn with a
// probability in proportion to its multiplicity times
//
//	1/2 + S_h / 2 S,
//
// S_h the standard deviation of label minus prediction there, estimated from the calibration
// labels, and S its mean. So half of the labels are spread evenly over the members, and half go
// where they are more informative (Neyman). Other draws gain a few percent at most and can lose
// much, because the deviation is only estimated. The main gain comes from the regression on the
// predictions in quant.Audits.
//
// Several communities are drawn from together. Each gets the same number of labels, or with a
// target width as many as it needs. pi of a vertex is the largest of its communities, so a label
// counts for each of them. Members with an audit label are included with their pi in this draw, and
// only the other members of their cell are drawn.
//
// Within a cell (the same strata of the same communities) the draw is systematic, in an order
// that the seed, the position of the log and the id decide: the sums of the probabilities
// cross a whole number wherever a vertex is drawn.
//
// The predicted width is quant's answer for the expected sums of such a draw. Only OfState does
// I/O. Cost: O(n log n + n K) for n members.
package ask
