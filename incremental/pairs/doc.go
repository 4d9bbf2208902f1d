// Package pairs keeps, for every label, what was said of its vertex when the label was given.
//
// A label and a prediction are two observations of one vertex, each made at a time. Together
// they say how the classifier errs only if both are about the vertex as it was then: a later
// prediction of a person who changed in between would look like an error. So a label is paired
// with the prediction nearest to it in time: the one that it found, or the first one after it,
// if that came sooner after the label than the found one was old. Feature stores call this
// point-in-time correctness.
//
// A pair reads the vertex as it is while its prediction stands: nothing is stored. Once a newer
// prediction of the same model version takes the place of it, the pair is frozen: the
// prediction and what the neighbours said of themselves before that step, and the labels around
// at its end. A frozen pair changes no more, and stays a valid observation of the classifier.
// It ends where
//
//   - the label is asserted again, is withdrawn, expires or is erased: another one is paired anew;
//   - a prediction of another model version comes, or that version becomes the one in use: the
//     classifier changed, and not the vertex;
//   - the prediction is withdrawn and the pair is not frozen yet: then it is frozen.
//
// A label that contradicts the one before it knows more than the predictions of its time, which
// still rest on what was written before. Its pair reads the vertex as it is until four more
// predictions have come.
//
// The predictions of a built-in classifier follow the labels around, not the vertex: a pair with
// one is never frozen.
//
// A label is fresh as far as its vertex is predicted as it was then: s = 1 - |f - f'|/2, in units
// of 1/256, with f the prediction of now and f' that of the pair. So s is one until the pair is
// frozen. For every vertex the package counts the calibration labels among its neighbours by
// class, each by its freshness.
//
// Everything is integers. The state after any history equals that of a slow twin that keeps all
// of it, and a restored state equals one that never stopped. O(K) for a label or a prediction
// of a labelled vertex, O(degree) where freshness changes, O(degree K) to freeze, O(1) for an edge.
package pairs
