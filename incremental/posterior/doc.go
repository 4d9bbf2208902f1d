// Package posterior corrects the classifier: from predictions, neighbourhoods and calibration
// labels it computes for every vertex v the probabilities pi(v) of the classes. It also measures by
// the edges how a community was selected.
//
// L is the calibration labels of vertices with a prediction, Y their classes, one-hot, and pi0
// their shares with .1 added to each count. With f(v) the prediction, g its mean over the
// neighbours, h that of g over them, c1(v) the labels among the neighbours by class, and c2(v) the
// labels two steps away, each weighted by the walks that lead there and without the label of v
// itself,
//
//	pi_i(v) = softmax_i( log pi0_i + b_i + sum_j theta_j x_ji(v) )
//
// over eleven views x_j: the logarithms of f, g and h against pi0, those of the label counts mixed
// with 1 and with 0.1 of pi0, f once more, scaled by 1 - 1/n for a vertex with n predictions or
// posts so far, and the first three once more, scaled by how far the labels are (see views). No
// label enters the views of its own vertex. The eleven theta and K intercepts b maximise a
// penalised likelihood on L, which is concave, so a Newton iteration finds its maximum; see fit.
//
// An Epoch is the coefficients and the sums over the whole graph under them: of pi, and of pi pi'
// over the edges. Expected computes from these the number of edges inside a community with members
// drawn at random within their classes. A community with many more edges is a place; see package
// quant for the consequence.
//
// An edge counts once for any weight. Matrices are row-major, probabilities float64, and a vertex
// without a prediction has no posterior. The package draws nothing and iterates over sorted slices
// only: equal graphs give equal bits.
//
// An edge hardly changes the inputs of vertices two steps away. They read it when they are computed
// for another reason, at the latest in the next Flush. Until then the shares of a simulated network
// lag by .01 standard errors in the median and by .08 to .14 at the 99th percentile. g and c1/d of
// neighbours are rounded to 2^-16, and a vertex of more than 65,535 of them reads g in place of h,
// and no c2.
//
// Cost: O(degree K) a vertex that is computed, O(1) to note a change, O(K²) an edge and
// O(labels (K + 10)²) a Newton step for an epoch. It knows no kernel and no estimator.
package posterior
