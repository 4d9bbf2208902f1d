package posterior

import (
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
)

// Vertex is the store's dense vertex index.
type Vertex = graphstore.Vertex

// Views is the number of views of a vertex that the posterior combines, besides those of
// attributes; see Feature.
const Views = 11

// The places of the views.
const (
	viewOwn = iota // f, then g and h
	viewNear
	viewNext
	viewLabels         // c1 and c2 with one pi0, then with a tenth of it
	viewFar    = 3 + 4 // f, g and h once more, scaled by how far the labels are
	viewOften  = 10    // f once more, scaled by how often the vertex was observed
)

const (
	// probabilityMin is the least probability that a logarithm is taken of: a classifier's own
	// zeros are no stronger evidence.
	probabilityMin = 1e-4

	// mixingMost and mixingLeast are the observations of pi0 that label counts are
	// mixed with. Two of them let the fit choose how fast labels outweigh the rest.
	mixingMost, mixingLeast = 1.0, 0.1
)

var logMixingLeast = math.Log(mixingLeast)

// Reader computes posteriors and views of single vertices. It holds scratch memory of
// one goroutine.
type Reader struct {
	coefficients *Coefficients

	view     graphstore.View
	sums     *neighborhood.Sums
	pairs    *pairs.Pairs
	classes  int
	means    []uint32  // K: sums over the vertices two steps away; see pairs.AddNext
	walks    []uint32  // K: the same
	scores   []float64 // K: scratch
	logPrior []float64 // K: log pi0
	prior    []float64 // K: pi0

	features    []float64 // 2F: of the vertex that was read last, then means over its neighbours
	featureSums []int64   // F: scratch
	rows        featureRows

	often           float64   // 1 - 1/n for a prediction that rests on n observations
	own, near, next []float64 // K: f, g, h before normalisation
	one, two        counts    // c1, c2
}

// counts are sums of labels, or of parts of them.
type counts struct {
	each []float64 // K
	all  float64
}

// newReader returns a reader for these coefficients, which only posteriors need.
func (s *State) newReader(
	view graphstore.View, sums *neighborhood.Sums, prior []float64, coefficients *Coefficients,
) *Reader {
	k := len(prior)
	row := func() []float64 { return make([]float64, k) }
	in := &Reader{
		coefficients: coefficients, view: view, sums: sums, pairs: s.pairs, classes: k,
		prior: prior,
		means: make([]uint32, k), walks: make([]uint32, k), scores: row(), logPrior: row(),
		own: row(), near: row(), next: row(), one: counts{each: row()}, two: counts{each: row()},
	}
	in.rows = s.features
	in.featureSums = make([]int64, len(in.rows.list))
	in.features = make([]float64, 2*len(in.rows.list))
	for i, p := range prior {
		in.logPrior[i] = math.Log(p)
	}
	return in
}

// Reader returns a reader of the present epoch, which there must be.
func (s *State) Reader(view graphstore.View, sums *neighborhood.Sums) *Reader {
	return s.newReader(view, sums, s.epoch.Prior, &s.epoch.Coefficients)
}

// Views writes the V x K views of v to dst, and reports whether it has a prediction.
func (in *Reader) Views(dst []float64, v Vertex) bool {
	if !in.read(v) {
		return false
	}
	in.views(dst)
	return true
}

// LabelViews is Views of a label, as its pair has them.
func (in *Reader) LabelViews(dst []float64, v Vertex) bool {
	if !in.readLabel(v) {
		return false
	}
	in.views(dst)
	return true
}

// labelPosterior is Posterior of a label, as its pair has it.
func (in *Reader) labelPosterior(dst []float64, v Vertex) {
	if in.readLabel(v) {
		in.score(in.scores)
		softmax(dst, in.scores)
	}
}

// Posterior writes pi(v), K, to dst, and reports whether v has a prediction.
func (in *Reader) Posterior(dst []float64, v Vertex) bool {
	if !in.read(v) {
		return false
	}
	in.score(in.scores)
	softmax(dst, in.scores)
	return true
}

// read gathers the inputs of v. It reports false when v has no prediction.
func (in *Reader) read(v Vertex) bool {
	units := in.view.Prediction(v)
	if units == nil {
		return false
	}
	raise(in.own, units, event.One, 1)
	in.setOften(in.view.Evidence(v).Observations)
	if votes := in.sums.Votes(v); votes.Mass > 0 {
		const unit = 1. / graphstore.MassWhole
		raise(in.near, votes.Sum, float64(votes.Mass)*unit*event.One, unit)
	} else {
		copy(in.near, in.own)
	}
	clear(in.means)
	clear(in.walks)
	in.readNext(in.pairs.AddNext(in.means, in.walks, in.view, in.sums, v), in.means)
	in.readLabels(in.pairs.Labels(v), in.walks)
	in.readFeatures(v)
	return true
}

// readLabel gathers the inputs of a label, as its pair has them.
func (in *Reader) readLabel(v Vertex) bool {
	pair := in.pairs.Frozen(v)
	if pair == nil {
		return in.read(v)
	}
	raise(in.own, pair.Own, event.One, 1)
	in.setOften(pair.Observed)
	if pair.Votes.Mass > 0 {
		raise(in.near, pair.Votes.Sum, event.One, 1)
	} else {
		copy(in.near, in.own)
	}
	in.readNext(pair.Neighbours, pair.Next)
	in.readLabels(pair.Labels, pair.Walks)
	in.readFeatures(v)
	return true
}

// setOften sets how much more than one observation the prediction rests on. One of a built-in
// classifier, which counts none, is like a first observation.
func (in *Reader) setOften(observations uint32) {
	in.often = 1 - 1/float64(max(observations, 1))
}

// readNext sets h to the mean of sums over the neighbours, and to g without any.
func (in *Reader) readNext(neighbours uint32, means []uint32) {
	if neighbours > 0 {
		raise(in.next, means, float64(neighbours)*pairs.Unit, 1)
	} else {
		copy(in.next, in.near)
	}
}

// readLabels sets c1 and c2.
func (in *Reader) readLabels(one, two []uint32) {
	labels, sum := uint32(0), uint32(0)
	for i, n := range one {
		labels += n
		in.one.each[i] = float64(int32(n)) * (1. / pairs.Whole)
	}
	for i, n := range two {
		sum += n
		in.two.each[i] = float64(int64(n)) * (1. / pairs.Unit)
	}
	in.one.all = float64(int32(labels)) * (1. / pairs.Whole)
	in.two.all = float64(int64(sum)) * (1. / pairs.Unit)
}

// raise writes a sum of distributions, in these units, to dst. Each entry is at least
// probabilityMin of all.
func raise[T uint32 | uint64](dst []float64, sum []T, all, unit float64) {
	least := all * probabilityMin
	for i, x := range sum {
		// an instruction, where the conversion of all of uint64 takes a branch
		y := float64(float64(int64(x)) * unit)
		if y < least {
			y = least
		}
		dst[i] = y
	}
}

// normalize has f, g and h of the vertex that was read last sum to one.
func (in *Reader) normalize() {
	for _, p := range [...][]float64{in.own, in.near, in.next} {
		scale := 1 / total(p)
		for i := range p {
			p[i] *= scale
		}
	}
}

// views writes the V x K views of the vertex that was read last to dst.
func (in *Reader) views(dst []float64) {
	in.normalize()
	k := in.classes
	far := in.far()
	for i, prior := range in.logPrior {
		for j, x := range [...]float64{in.own[i], in.near[i], in.next[i]} {
			x = logarithm(x) - prior
			dst[(viewOwn+j)*k+i], dst[(viewFar+j)*k+i] = x, float64(far*x)
		}
	}
	for i, x := range dst[viewOwn*k : (viewOwn+1)*k] {
		dst[viewOften*k+i] = float64(in.often * x)
	}
	in.mix(dst[viewLabels*k:], &in.one, mixingMost, 0)
	in.mix(dst[(viewLabels+1)*k:], &in.two, mixingMost, 0)
	in.mix(dst[(viewLabels+2)*k:], &in.one, mixingLeast, logMixingLeast)
	in.mix(dst[(viewLabels+3)*k:], &in.two, mixingLeast, logMixingLeast)
	in.featureViews(dst[Views*k:])
}

// far returns how far labels are from the vertex that was read last: 1 where there are none.
func (in *Reader) far() float64 { return 1 / (1 + in.one.all + in.two.all) }

// mix writes to dst the logarithms, against pi0, of the shares of the counts among all, mixed
// with m observations of pi0. They are one number for all classes without a label.
func (in *Reader) mix(dst []float64, c *counts, m, logM float64) {
	per := logarithm(c.all + m)
	none := logM - per
	for i, count := range c.each {
		dst[i] = none
		if count > 0 {
			dst[i] = logarithm(count+float64(m*in.prior[i])) - per - in.logPrior[i]
		}
	}
}

// score writes the logarithm of pi of the vertex that was read last to dst, up to a constant: log
// pi0 + b + the views times theta. Terms that all classes share are omitted, such as the
// normalising sums of f, g and h.
func (in *Reader) score(dst []float64) {
	far, t := in.far(), in.coefficients.Theta
	own := t[viewOwn] + float64(far*t[viewFar]) + float64(in.often*t[viewOften])
	near, next := t[viewNear]+float64(far*t[viewFar+1]), t[viewNext]+float64(far*t[viewFar+2])
	rest := 1 - own - near - next
	for i, b := range in.coefficients.B[:len(dst)] {
		dst[i] = b + float64(rest*in.logPrior[i]) + float64(own*logarithm(in.own[i])) + float64(
			near*logarithm(in.near[i]),
		) + float64(next*logarithm(in.next[i]))
	}
	in.scoreMixed(dst, &in.one, t[viewLabels], t[viewLabels+2])
	in.scoreMixed(dst, &in.two, t[viewLabels+1], t[viewLabels+3])
	in.scoreFeatures(dst)
}

// scoreMixed adds both views of label counts to scores, minus their value for a class without a
// label; see mix.
func (in *Reader) scoreMixed(dst []float64, c *counts, most, least float64) {
	none := float64(least * logMixingLeast) // the logarithm of mixingMost is 0
	for i, count := range c.each[:len(dst)] {
		if count > 0 {
			prior := in.prior[i]
			dst[i] += float64(most*logarithm(count+float64(mixingMost*prior))) +
				float64(
					least*logarithm(count+float64(mixingLeast*prior)),
				) - float64((most+least)*in.logPrior[i]) - none
		}
	}
}

// withoutLabels turns the views into those of the same vertex far from every label.
func withoutLabels(views []float64, k int) {
	clear(views[viewLabels*k : viewFar*k])
	copy(views[viewFar*k:viewOften*k], views[:viewLabels*k])
}

func total(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}
