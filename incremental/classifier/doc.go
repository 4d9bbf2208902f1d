// Package classifier predicts vertices from the labels of others, so that labels
// and edges alone give estimates.
//
// Diffusion computes the class of the label where a walk from a vertex stops, and returns the
// predictions that changed in a step. The caller puts them into the store
// (graphstore.Store.Derive), where they are predictions like any other, of a model version that
// events may not use. A vertex with a prediction by an event gets no other. Only an erasure removes
// a derived prediction.
//
// A label must not judge its own prediction: the confusion of a classifier is measured on the
// labelled vertices, and a classifier that used their labels is better there than elsewhere. So
// half of the labels are sources, and the other half calibrates.
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
