// Package pairs stores, for every label, the prediction and the surroundings of its vertex at the
// time of the label.
//
// A label and a prediction are two observations of one vertex, each made at a time. Together they
// measure the classifier's errors only if both describe the vertex at the same time: a later
// prediction of a person who changed in between would look like an error. So a label is paired with
// the prediction nearest to it in time: the present one, or the first later one if that comes
// sooner after the label than the present one is old. Feature stores call this point-in-time
// correctness.
//
// While the paired prediction stands, the pair reads the vertex as it is, and nothing is stored.
// When a newer prediction of the same model version replaces it, the pair is frozen. It then stores
// the prediction and the neighbours' predictions from before that step, and the labels around from
// its end. A frozen pair does not change, and stays a valid observation of the classifier. It ends
// if
//
//   - the label is asserted again, is withdrawn, expires or is erased: a new label makes a new
//     pair;
//   - a prediction of another model version comes, or that version becomes the one in use: the
//     classifier changed, and not the vertex.
//
// A pair whose prediction is withdrawn is frozen if it is not yet.
//
// A label that contradicts the one before it is newer than the posts behind the predictions of its
// time. Its pair reads the vertex as it is until four more predictions have come.
//
// The predictions of a built-in classifier follow the labels around, not the vertex: a pair with
// one is never frozen.
//
// The freshness of a label is s = 1 - |f - f'|/2, in units of 1/256, with f the present prediction
// and f' that of the pair. So s is one until the pair is frozen. With a half-life h, see LetAge, it
// is multiplied by 2^(-age/h), the age in eighths of h. For every vertex the package counts the
// calibration labels among its neighbours by class, each by its freshness.
//
// Everything is integers. The state after any history equals that of a slow reference that stores
// everything, and a restored state equals that of a run without a restart. O(K) for a label or a
// prediction of a labelled vertex, O(degree) where freshness changes, O(degree K) to freeze, O(1)
// for an edge.
package pairs
