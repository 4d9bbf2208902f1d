package posterior

import (
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/pairs"
	"gqlstream/incremental/parallel"
)

// featureRows has the features of all vertices.
type featureRows struct {
	list []Feature // F
	rows []int16   // n x F, in units of 1/featureUnit
}

// newFeatureRows computes the features of all vertices.
func newFeatureRows(view graphstore.View, list []Feature) featureRows {
	r := featureRows{list: list}
	r.grow(view.Vertices())
	if len(list) > 0 {
		parallel.Ranges(view.Vertices(), func(from, to int) {
			for v := Vertex(from); v < Vertex(to); v++ {
				r.set(view, v)
			}
		})
	}
	return r
}

func (r *featureRows) grow(vertices int) {
	if more := vertices*len(r.list) - len(r.rows); more > 0 {
		r.rows = append(r.rows, make([]int16, more)...)
	}
}

// of returns the features of v.
func (r *featureRows) of(v Vertex) []int16 {
	n := len(r.list)
	return r.rows[int(v)*n : (int(v)+1)*n]
}

// set computes the features of v.
func (r *featureRows) set(view graphstore.View, v Vertex) {
	row := r.of(v)
	for i := range r.list {
		f := &r.list[i]
		row[i] = f.of(view.Attribute(v, f.Key))
	}
}

// useFeatures computes the features of all vertices of another epoch.
func (s *State) useFeatures(view graphstore.View, list []Feature) {
	s.features, s.inside.features = newFeatureRows(view, list), len(list)
}

// countFeatures sums the features of the members of all communities again.
func (s *State) countFeatures(view graphstore.View) {
	for id, h := range s.inside.histograms {
		h.features = make([]uint64, len(s.features.list))
		view.ForMembers(graphstore.Community(id), func(v Vertex, multiplicity uint32) {
			h.addFeatures(s.features.of(v), s.contributions[v].weight(multiplicity))
		})
	}
}

// updateFeatures computes the features of a vertex again. If they changed, the posteriors of the
// vertex and its neighbours do.
func (s *State) updateFeatures(view graphstore.View, v Vertex) {
	row := s.features.of(v)
	before := append(s.rowBefore[:0], row...)
	s.rowBefore = before
	if s.features.set(view, v); slices.Equal(before, row) {
		return
	}
	for _, m := range view.MemberOf(v) {
		h, weight := s.inside.histograms[m.Community], s.contributions[v].weight(m.Multiplicity)
		h.addFeatures(before, -weight)
		h.addFeatures(row, weight)
	}
	s.touch(v, byNews)
	for _, u := range view.Neighbors(v) {
		s.touch(u, byNews)
	}
}

// readFeatures gathers the features of v, and their means over its neighbours.
func (in *Reader) readFeatures(v Vertex) {
	n := len(in.featureSums)
	if n == 0 {
		return
	}
	for i, x := range in.rows.of(v) {
		in.features[i] = float64(x) * (1. / featureUnit)
	}
	clear(in.featureSums)
	neighbours := in.view.Neighbors(v)
	if len(neighbours) > pairs.NeighboursMost {
		neighbours = nil
	}
	for _, u := range neighbours {
		for i, x := range in.rows.of(u) {
			in.featureSums[i] += int64(x)
		}
	}
	scale := 1. / featureUnit / float64(max(len(neighbours), 1))
	for i, x := range in.featureSums {
		in.features[n+i] = float64(float64(x) * scale)
	}
}

// featureViews writes the views of the features: one of each feature for each class.
func (in *Reader) featureViews(dst []float64) {
	clear(dst)
	k := in.classes
	for j, x := range in.features {
		for i := range k {
			dst[(j*k+i)*k+i] = x
		}
	}
}

// scoreFeatures adds the terms of the features to scores.
func (in *Reader) scoreFeatures(scores []float64) {
	theta := in.coefficients.Theta[Views:]
	for j, x := range in.features {
		for i, t := range theta[j*len(scores) : (j+1)*len(scores)] {
			scores[i] += float64(t * x)
		}
	}
}

// measureFeatures sets the means and variances of the features over the open vertices.
func (s *State) measureFeatures(view graphstore.View) {
	e, n := s.epoch, len(s.features.list)
	if n == 0 {
		return
	}
	sums, squares := make([]int64, n), make([]int64, n)
	for v := range Vertex(view.Vertices()) {
		if isOpen(view, v) {
			for i, x := range s.features.of(v) {
				sums[i] += int64(x)
				squares[i] += int64(x) * int64(x)
			}
		}
	}
	e.FeatureMeans, e.FeatureVariances = make([]float64, n), make([]float64, n)
	open := float64(max(s.inside.open, 1))
	for i, sum := range sums {
		mean := float64(sum) / open / featureUnit
		e.FeatureMeans[i] = mean
		e.FeatureVariances[i] = max(0,
			float64(squares[i])/open/(featureUnit*featureUnit)-float64(mean*mean))
	}
}

// Features returns the means of the features of the open members, F; nil without any.
func (h *Histogram) Features() []float64 {
	all := uint64(0)
	for _, n := range h.cells {
		all += n
	}
	if len(h.features) == 0 || all == 0 {
		return nil
	}
	means := make([]float64, len(h.features))
	for i, sum := range h.features {
		means[i] = float64(int64(sum)) / float64(all) / featureUnit
	}
	return means
}

// Apart returns how far members with these means of the features are from the open vertices of the
// graph in the attribute in which they are farthest: the divergence of Kullback and Leibler, less
// its mean for as many members drawn at random, and less the logarithm of the number of attributes
// to choose from. Numbers are taken for normal.
func (e *Epoch) Apart(means []float64, members float64) (most float64) {
	attributes := 0.0
	for from, values := range e.byAttribute {
		apart, rest, restAll := 0.0, 1.0, 1.0
		for i, f := range values {
			here, there := means[from+i], e.FeatureMeans[from+i]
			if f.Knots != nil {
				d := here - there
				apart += d * d / 2 / max(e.FeatureVariances[from+i], 1./featureUnit)
				continue
			}
			share, shareAll := here+f.Share, there+f.Share
			apart += nats(share, shareAll)
			rest, restAll = rest-share, restAll-shareAll
		}
		apart += nats(rest, restAll)
		most = max(most, apart-float64(len(values))/(2*members))
		attributes++
	}
	return most - math.Log(max(attributes, 1))/members
}

// nats returns p log(p/q), for shares that may be a little below 0.
func nats(p, q float64) float64 {
	if !(p > 0) {
		return 0
	}
	return p * math.Log(p/max(q, probabilityMin))
}
