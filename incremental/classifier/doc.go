// Package classifier predicts vertices from the labels of others, so that labels
// and edges alone give estimates.
//
// Diffusion asks in which class walks from a vertex meet a label, and says what predictions
// changed after a step; the caller puts them into the store (graphstore.Store.Derive), where they
// are predictions like any other, of a model version that events may not use. A prediction that an
// event asserted wins: such a vertex gets no other. Only an erasure takes it back.
//
// A label must not vouch for itself: the confusion of a classifier is read off the labelled
// vertices, and one that has seen their labels looks better there than it is elsewhere. So half of
// the labels are sources and the other half calibrates.
//
// Predictions lag behind the field by at most Lag in every class and depend on the history within
// that. Cost: that of a diffusion.Dual of K functions, and O(K) at an emission for every vertex
// that it touched. Memory: 16K + 24 bytes a vertex.
package classifier

import "gqlstream/graphstore"

// Name is how the classifier is configured, and the part of its model version after
// graphstore.DerivedPrefix.
const Name = "diffusion"

// Vertex is the store's dense vertex index.
type Vertex = graphstore.Vertex
