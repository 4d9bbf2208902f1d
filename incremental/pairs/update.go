package pairs

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Update follows labels and predictions from the graph before delta to the graph of view. sums has
// been updated for the same delta.
func (p *Pairs) Update(view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums) {
	p.grow(view.Vertices())
	p.countEdges(delta)
	p.changes, p.newlyFrozen, p.unfinished = p.changes[:0], p.newlyFrozen[:0], p.unfinished[:0]
	for _, v := range p.collect(view, delta) {
		p.updatePair(view, delta, sums, v)
	}
	p.touched = p.touched[:0]
	for i, v := range p.unfinished {
		pair := p.newlyFrozen[i]
		pair.Labels = slices.Clone(p.Labels(v))
		pair.Next, pair.Walks = make([]uint32, p.classes), make([]uint32, p.classes)
		pair.Neighbours = p.AddNext(pair.Next, pair.Walks, view, sums, v)
	}
}

// countEdges counts the labels at the ends of edges that appeared or went, as they were.
func (p *Pairs) countEdges(delta *graphstore.Delta) {
	for _, e := range delta.Edges {
		if sign := neighborhood.Appeared(e); sign != 0 {
			p.count(e.U, p.weights[e.V], sign)
			p.count(e.V, p.weights[e.U], sign)
		}
	}
}

// count counts the label of a neighbour at v, or takes it back.
func (p *Pairs) count(v Vertex, w Weight, sign int) {
	if w.Class != event.NoClass {
		p.Labels(v)[w.Class] += uint32(sign) * w.Units // two's complement: -1 subtracts
	}
}

// collect lists, sorted, the vertices with a changed label or prediction, and those with a pair
// that ends because its model version is no longer in use.
func (p *Pairs) collect(view graphstore.View, delta *graphstore.Delta) []Vertex {
	for _, l := range delta.Labels {
		p.touched = append(p.touched, l.V)
	}
	for _, c := range delta.Predictions {
		if view.Label(c.V).Class != event.NoClass {
			p.touched = append(p.touched, c.V)
		}
	}
	if active, known := view.ActiveVersion(); known && active != p.active {
		p.active = active
		for v := range p.frozen {
			if view.Prediction(v) == nil {
				p.touched = append(p.touched, v)
			}
		}
	}
	slices.Sort(p.touched)
	p.touched = slices.Compact(p.touched)
	return p.touched
}

// updatePair updates the pair of v, and the label counts of its neighbours.
func (p *Pairs) updatePair(
	view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums, v Vertex,
) {
	p.noteContradiction(view, delta, v)
	was, pair := p.weights[v], p.frozen[v]
	change := Change{V: v, Before: was, Fresh: p.freshBefore(view, delta, v)}
	then, _ := neighborhood.PredictionBefore(view, delta, v)
	if pair != nil {
		then = pair.Own
	}
	now := p.next(view, delta, sums, v)
	if now == nil {
		delete(p.frozen, v)
	} else {
		p.frozen[v] = now
	}
	p.setPresent(view, v)
	change.After = p.weigh(view, v)
	if units := p.Prediction(view, v); units != nil && then != nil {
		change.Moved = apart(units, then)
	}
	p.changes = append(p.changes, change)
	if change.After == was {
		return
	}
	p.setWeight(v, change.After)
	for _, u := range view.Neighbors(v) {
		p.count(u, was, -1)
		p.count(u, change.After, 1)
	}
}

// correctedWaits is the number of predictions after which the pair of a label that contradicts the
// one before it may be frozen. For a while after a change of mind, predictions rest on older posts;
// a pair with such a prediction would count as an error of the classifier for ever.
const correctedWaits = 4

// noteContradiction notes whether the label of v contradicts the one before it.
func (p *Pairs) noteContradiction(view graphstore.View, delta *graphstore.Delta, v Vertex) {
	now := view.Label(v).Class
	before := neighborhood.LabelBefore(view, delta, v).Class
	_, renamed := slices.BinarySearch(delta.Reused, v)
	switch {
	case renamed, now == event.NoClass, before == event.NoClass:
		delete(p.waits, v)
	case now != before:
		p.waits[v] = correctedWaits
	}
}

// countWait counts a prediction that did not freeze the pair of a corrected label.
func (p *Pairs) countWait(v Vertex) {
	if p.waits[v]--; p.waits[v] == 0 {
		delete(p.waits, v)
	}
}

// freshBefore returns the freshness of the label that v had before delta.
func (p *Pairs) freshBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) uint32 {
	if neighborhood.LabelBefore(view, delta, v).Class == event.NoClass {
		return 0
	}
	if p.present != nil {
		return p.present[v]
	}
	if pair := p.frozen[v]; pair != nil {
		return pair.Fresh
	}
	return Whole
}

// next returns the frozen pair that v has from now on, nil for none.
func (p *Pairs) next(
	view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums, v Vertex,
) *Pair {
	if view.Label(v).Class == event.NoClass {
		return nil
	}
	if p.held != nil {
		return p.heldPair(view, v)
	}
	_, renamed := slices.BinarySearch(delta.Reused, v)
	pair, renewed := p.frozen[v], neighborhood.LabelChange(delta, v) != nil
	if pair == nil || renewed {
		if renamed || !p.freezes(view, delta, v) {
			return nil
		}
		if p.waits[v] > 0 {
			p.countWait(v)
			return nil
		}
		pair = p.freeze(view, delta, sums, v)
	}
	units := view.Prediction(v)
	switch {
	case units == nil && pair.Version != p.active, units != nil && view.Version(v) != pair.Version:
		return nil
	case units != nil:
		pair.Fresh = freshness(units, pair.Own)
	}
	if pair != p.frozen[v] {
		p.newlyFrozen, p.unfinished = append(p.newlyFrozen, pair), append(p.unfinished, v)
	}
	return pair
}

// heldPair returns the pair that Hold gave the label of v, as fresh as it is now.
func (p *Pairs) heldPair(view graphstore.View, v Vertex) *Pair {
	if p.held[v] == nil {
		return nil
	}
	pair := *p.held[v]
	if units := view.Prediction(v); units != nil {
		pair.Fresh = freshness(units, pair.Own)
	}
	return &pair
}

// freezes reports whether the prediction that v had before delta is the nearest to its label.
func (p *Pairs) freezes(view graphstore.View, delta *graphstore.Delta, v Vertex) bool {
	before, version := neighborhood.PredictionBefore(view, delta, v)
	after := view.Prediction(v)
	if before == nil || slices.Equal(before, after) ||
		graphstore.IsDerived(view.Versions()[version]) {
		return false
	}
	if after == nil {
		return true
	}
	if view.Version(v) != version {
		return false // the pair ends
	}
	then, now := neighborhood.EvidenceBefore(view, delta, v).Time, view.Evidence(v).Time
	return then != now && !nearer(now, then, view.LabelTime(v))
}

// nearer reports whether a time is nearer to that of a label than another one is. Of two that are
// as near, the one before the label is: the label found it.
func nearer(now, then, label event.Time) bool {
	a, b := distance(now, label), distance(then, label)
	return a < b || a == b && now < then
}

func distance(a, b event.Time) uint64 {
	return uint64(max(a, b)) - uint64(min(a, b))
}

// freeze returns the pair of v with the predictions from before delta. The labels around it, and
// the sums two steps away, are read at the end of the update.
func (p *Pairs) freeze(
	view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums, v Vertex,
) *Pair {
	units, version := neighborhood.PredictionBefore(view, delta, v)
	evidence := neighborhood.EvidenceBefore(view, delta, v)
	return &Pair{
		Version: version, Time: evidence.Time, Observed: evidence.Observations,
		Own: slices.Clone(units), Votes: p.meanOf(sums.Before(v)), Fresh: Whole,
	}
}

// meanOf returns the mean of votes as those of one neighbour.
func (p *Pairs) meanOf(votes neighborhood.Votes) neighborhood.Votes {
	mean := neighborhood.Votes{Sum: make([]uint64, p.classes)}
	if p.hard {
		mean.Hard = make([]uint64, p.classes)
	}
	if votes.Mass == 0 {
		return mean
	}
	mean.Mass = 1
	for i, x := range votes.Sum {
		mean.Sum[i] = x / votes.Mass
	}
	if majority, _ := votes.Majority(); p.hard {
		mean.Hard[majority] = 1
	}
	return mean
}

// weigh returns the weight of the label of v.
func (p *Pairs) weigh(view graphstore.View, v Vertex) Weight {
	l := view.Label(v)
	if l.Class == event.NoClass || l.Role != event.Calibrate || p.Prediction(view, v) == nil {
		return noWeight
	}
	return Weight{Class: l.Class, Units: p.Fresh(view, v)}
}
