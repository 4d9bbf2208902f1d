// Package audit keeps, per tracked community, what its members with an audit label add up
// to; quant.Audit has the formulas that read the sums.
//
// With m the multiplicity of such a member, pi the probability that it was drawn with, y its
// class and p its prediction (zero where it has none), two weights are summed,
//
//	w = m / pi   and   c = m² (1 - pi) / pi²,
//
// each alone, by class, and times every p_j, and c also times p_j by class and times p_j p_k.
//
// Invariant: every sum equals the sum of its terms counted from nothing, bit for bit: a term
// is a fixed function of integers, is cut to the unit of tally.Sum once, and enters or leaves
// by integer addition. What a vertex has added is kept beside the sums, so that it leaves as
// it came, whatever has become of its label, its prediction and its memberships meanwhile.
//
// Cost: O(K²) per community of an audited vertex that an event touches, and one look into a
// map per other change of a prediction or a membership. Audit labels are few.
//
// It solves nothing. Labels of other roles, edges and kernels are none of its business.
package audit
