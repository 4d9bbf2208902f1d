package neighborhood

import (
	"cmp"
	"slices"

	"gqlstream/graphstore"
)

// PredictionBefore returns the prediction of v before delta, and its model version.
func PredictionBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) (units []uint32, version uint32) {
	p := changeOf(delta.Predictions, v, func(c graphstore.PredictionChange) Vertex { return c.V })
	if p != nil {
		return p.Before, p.VersionBefore
	}
	return view.Prediction(v), view.Version(v)
}

// LabelBefore returns the label of v before delta.
func LabelBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) graphstore.Label {
	if l := LabelChange(delta, v); l != nil {
		return l.Before
	}
	return view.Label(v)
}

// LabelChange returns the change of the label of v, nil if there is none.
func LabelChange(delta *graphstore.Delta, v Vertex) *graphstore.LabelChange {
	return changeOf(delta.Labels, v, func(c graphstore.LabelChange) Vertex { return c.V })
}

// changeOf looks v up in changes that are sorted by vertex.
func changeOf[T any](changes []T, v Vertex, vertex func(T) Vertex) *T {
	i, found := slices.BinarySearchFunc(changes, v, func(c T, v Vertex) int { return cmp.Compare(vertex(c), v) })
	if !found {
		return nil
	}
	return &changes[i]
}

// Appeared returns 1 for an edge that is new, -1 for one that is gone, else 0.
func Appeared(e graphstore.EdgeChange) int {
	switch {
	case e.Before == 0 && e.After != 0:
		return 1
	case e.Before != 0 && e.After == 0:
		return -1
	}
	return 0
}
