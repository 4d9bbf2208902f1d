// Package classifier predicts vertices from the labels of others, so that labels
// and edges alone give estimates.
//
// Two classifiers, by name. Enq (Milli, Gao and Cheng, "Quantification in Social Networks", DSAA
// 2015) lets the labelled neighbours of a vertex vote; Diffusion asks in which class walks from the
// vertex meet a label. Both say what predictions changed after a step; the caller puts them into
// the store (graphstore.Store.Derive), where they are predictions like any other, of a model
// version that events may not use. A prediction that an event asserted wins: such a vertex gets no
// other. Only an erasure takes it back.
//
// A label must not vouch for itself: the confusion of a classifier is read off the labelled
// vertices, and one that has seen their labels looks better there than it is elsewhere. Enq leaves
// a vertex's own label out of its prediction by construction, and out of what its neighbours tell
// it by Heard. Diffusion holds labels out: half of them are sources and the other half calibrates.
//
// Invariant of Enq, after every call: predictions and what is heard are functions of the graph, its
// labels and who has an outside prediction, bit for bit; no history shows. Predictions of Diffusion
// lag behind the field by at most Lag in every class and depend on the history within that.
//
// Cost of Enq: O(K) for an edge, O(degree K) for a label, and O(degree K + K^2) for every
// prediction that changes. Cost of Diffusion: that of a diffusion.Dual of K functions, and O(K) at
// an emission for every vertex that it touched. Memory: 4K + 4 bytes a vertex, and 16K + 30.
package classifier

import "gqlstream/graphstore"

// The classifiers by name.
const (
	EnqName       = "enq"
	DiffusionName = "diffusion"
)

// Names lists the classifiers in the order in which they are explained.
var Names = []string{EnqName, DiffusionName}

// Vertex is the store's dense vertex index.
type Vertex = graphstore.Vertex
