package posterior

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

const (
	// attributeCoefficientsMax bounds the coefficients of attributes. Each feature has two for
	// every class: of the vertex's own value, and of the mean over its neighbours.
	attributeCoefficientsMax = 64
	// attributePenalty is the penalty of their squares; that of the other coefficients is 1.
	attributePenalty = 2
	// attributeFreshMin is the least mean freshness of labels with which attributes are read.
	attributeFreshMin = 0.9
	// attributeSample is the number of vertices that features are chosen by, at most.
	attributeSample = 8192
	// valueShareMin is the least share of the vertices that have a value with a feature.
	valueShareMin = 0.01
	// knotsCount is the number of quantiles that turn a number into its rank.
	knotsCount = 17
	// featureUnit is the number 1 in the integer units of features. Integer sums over neighbours do
	// not depend on their order.
	featureUnit = 1 << 12
)

// Feature turns an attribute of a vertex into a number between -1 and 1. For a number it is the
// rank among the open vertices. For a text or a boolean it is 1 if the attribute has this value and
// else 0, less the share of the open vertices that have the value. It is 0 without the attribute.
type Feature struct {
	Key   string
	Value event.Value // of a text or a boolean; null for a number
	Knots []float64   // of a number: quantiles, ascending
	Share float64     // of a text or a boolean: of the open vertices
}

// of returns the feature of a vertex with this value, in units of 1/featureUnit.
func (f *Feature) of(value event.Value) int16 {
	switch {
	case value.Kind == event.NullValue || (f.Knots != nil) != (value.Kind == event.NumberValue):
		return 0
	case f.Knots != nil:
		return int16(math.Round(f.rank(value.Number) * featureUnit))
	case value == f.Value:
		return int16(math.Round((1 - f.Share) * featureUnit))
	}
	return int16(math.Round(-f.Share * featureUnit))
}

// rank returns where a number lies among the quantiles, from -1 to 1: in the middle of those that
// are equal to it, in proportion between two.
func (f *Feature) rank(x float64) float64 {
	from, _ := slices.BinarySearch(f.Knots, x)
	to := from
	for to < len(f.Knots) && f.Knots[to] == x {
		to++
	}
	at := float64(from+to-1) / 2
	switch {
	case from < to:
	case from == 0:
		at = 0
	case from == len(f.Knots):
		at = float64(from - 1)
	default:
		low, high := f.Knots[from-1], f.Knots[from]
		at = float64(from-1) + (x-low)/(high-low)
	}
	return 2*at/float64(len(f.Knots)-1) - 1
}

// chooseFeatures returns what an epoch reads of attributes: of those that at least half of the
// labels and of the open vertices have, first the numbers, then the most frequent values, as many
// as attributeCoefficientsMax allows. It reads a sample of the vertices. It returns none if labels
// are old: a fit would learn what people with an attribute thought when they were labelled.
func (s *State) chooseFeatures(view graphstore.View) []Feature {
	most := attributeCoefficientsMax / (2 * s.classes)
	if most == 0 || s.pairs.Freshness() < attributeFreshMin {
		return nil
	}
	labels := everyNth(s.labels(), attributeSample)
	open := s.sampleOpen(view, attributeSample)
	var numbers, values []Feature
	for _, key := range view.EvidenceAttributes() {
		if !mostHave(view, labels, key) || !mostHave(view, open, key) {
			continue
		}
		if f, is := numberFeature(view, open, key); is {
			numbers = append(numbers, f)
		} else {
			values = append(values, valueFeatures(view, open, key)...)
		}
	}
	slices.SortFunc(values, func(a, b Feature) int {
		return cmp.Or(
			cmp.Compare(b.Share, a.Share), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Value.Kind, b.Value.Kind), cmp.Compare(a.Value.Text, b.Value.Text),
		)
	})
	list := slices.Concat(numbers, values)
	list = list[:min(len(list), most)]
	slices.SortStableFunc(list, func(a, b Feature) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// Attributes describes the attributes that the posterior reads, by key.
func (e *Epoch) Attributes() (list []string) {
	for _, values := range e.byAttribute {
		key := values[0].Key
		switch {
		case values[0].Knots != nil:
			list = append(list, key)
		case len(values) == 1:
			list = append(list, key+" (1 value)")
		default:
			list = append(list, fmt.Sprintf("%s (%d values)", key, len(values)))
		}
	}
	return list
}

// Reads reports whether the posterior reads the attribute of that key.
func (e *Epoch) Reads(key string) bool {
	return slices.ContainsFunc(e.Features, func(f Feature) bool { return f.Key == key })
}

// byAttribute visits the features of each attribute, with the place of the first one.
func (e *Epoch) byAttribute(yield func(from int, values []Feature) bool) {
	for from, to := 0, 0; from < len(e.Features); from = to {
		for to < len(e.Features) && e.Features[to].Key == e.Features[from].Key {
			to++
		}
		if !yield(from, e.Features[from:to]) {
			return
		}
	}
}

// everyNth returns every n-th vertex of a list, at most as many as given.
func everyNth(list []Vertex, most int) (sample []Vertex) {
	for at := 0; at < len(list); at += (len(list)-1)/most + 1 {
		sample = append(sample, list[at])
	}
	return sample
}

// mostHave reports whether at least half of the vertices have an attribute.
func mostHave(view graphstore.View, sample []Vertex, key string) bool {
	have := 0
	for _, v := range sample {
		if view.Attribute(v, key).Kind != event.NullValue {
			have++
		}
	}
	return have > 0 && 2*have >= len(sample)
}

// numberFeature returns the feature of an attribute that is a number for most of those who have it,
// and not the same for all.
func numberFeature(view graphstore.View, sample []Vertex, key string) (f Feature, is bool) {
	var numbers []float64
	known := 0
	for _, v := range sample {
		x := view.Attribute(v, key)
		if x.Kind != event.NullValue {
			known++
		}
		if x.Kind == event.NumberValue {
			numbers = append(numbers, x.Number)
		}
	}
	if 2*len(numbers) <= known {
		return Feature{}, false
	}
	knots := quantiles(numbers)
	return Feature{Key: key, Knots: knots}, knots[0] < knots[knotsCount-1]
}

// valueFeatures returns a feature for each value of an attribute that is frequent enough. The value
// of more than half of the vertices is what the others are compared with.
func valueFeatures(view graphstore.View, sample []Vertex, key string) (list []Feature) {
	counts := map[event.Value]int{}
	for _, v := range sample {
		if x := view.Attribute(v, key); x.Kind == event.StringValue || x.Kind == event.BoolValue {
			counts[x]++
		}
	}
	for value, n := range counts {
		share := float64(n) / float64(len(sample))
		if share >= valueShareMin && share <= 0.5 {
			list = append(list, Feature{Key: key, Value: value, Share: share})
		}
	}
	return list
}

// quantiles returns knotsCount quantiles of numbers, which it sorts.
func quantiles(numbers []float64) []float64 {
	slices.Sort(numbers)
	knots := make([]float64, knotsCount)
	for i := range knots {
		knots[i] = numbers[i*(len(numbers)-1)/(knotsCount-1)]
	}
	return knots
}
