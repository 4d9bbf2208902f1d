package tally

import (
	"maps"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// countedLeast is the smallest change of a member's prediction, in total variation distance, that
// Counted includes. A classifier that reads neighbours changes many predictions a little when it
// predicts one person with many neighbours again. Such changes are no evidence of other opinions.
const countedLeast = 0.1

// Counted returns the change of the plain count, the mean prediction of all members that have one,
// since the last record, by class, and its standard errors. It returns nil before the first record
// and if no member has a prediction.
//
// Every member counts by its own prediction alone, whether it has a label or not: labels,
// coefficients and neighbours move nothing. A member that joins or leaves moves the count by how
// far its prediction is from the mean. A prediction of another model version than the one before
// moves nothing, even if the member had none in between.
//
// The error is the root of the sum of the squares of the members' changes. If each change was as
// likely in the other direction, the movement divided by it passes z by chance in either direction
// with a probability of at most 2 exp(-z²/2), for changes of any size (Efron, 1969).
func (t *Tallies) Counted(id CommunityID) (moved, errors []float64) {
	n := t.Known(id).Sum
	if !(n > 0) {
		return nil, nil
	}
	p := t.each[id].progress
	moved, errors = make([]float64, t.classes), make([]float64, t.classes)
	for k := range p.Counted {
		moved[k] = p.Counted[k] / n
		errors[k] = math.Sqrt(p.Squares[k]) / n
	}
	return moved, errors
}

// Composition returns the part of the change that Counted returns from members who joined, left, or
// were predicted for the first time, K; nil if there is no change.
func (t *Tallies) Composition(id CommunityID) []float64 {
	n := t.Known(id).Sum
	if !(n > 0) {
		return nil
	}
	p := t.each[id].progress
	part := make([]float64, len(p.Composition))
	for k, x := range p.Composition {
		part[k] = x / n
	}
	return part
}

// RoundedOff returns the movement of the count that a record did not publish because of rounding.
// It counts in the next record.
func (t *Tallies) RoundedOff(id CommunityID, published []float64) (left Progress) {
	n, p := t.Known(id).Sum, t.each[id].progress
	if len(published) != len(p.Counted) || !(n > 0) {
		return left
	}
	left.Counted = slices.Clone(p.Counted)
	for k := range published {
		left.Counted[k] -= float64(published[k] * n)
	}
	left.Squares = make([]float64, len(published))
	left.Composition = make([]float64, len(published))
	return left
}

// noteMovement notes by how much one member moves the count of a community, and reports whether
// it does.
func (t *Tallies) noteMovement(c *community, s shift, before, after *state) bool {
	was, is := before.profile.own, after.profile.own
	if s.before == 0 {
		was = nil
	}
	if s.after == 0 {
		is = nil
	}
	if c.changedModel(s, after) {
		return false
	}
	stays := was != nil && is != nil
	switch {
	case was == nil && is == nil, stays && before.version != after.version,
		stays && s.before == s.after && !apart(was, is),
		!(stays && s.before == s.after) && c.profiled == 0: // the mean is not known
		return false
	}
	c.progress.start(t.classes)
	for k := range t.classes {
		mean := 0.0
		if c.profiled > 0 {
			mean = c.p[soft][k].Float() / c.predicted()
		}
		d := beyond(is, k, mean, s.after) - beyond(was, k, mean, s.before)
		c.progress.Counted[k] += d
		c.progress.Squares[k] += float64(d * d)
		if !stays || s.before != s.after {
			c.progress.Composition[k] += d
		}
	}
	return true
}

// changedModel reports whether a member that stays has lost its prediction because another model
// version took over that predicts nothing of it yet, or has waited for a prediction since.
func (c *community) changedModel(s shift, after *state) bool {
	_, waits := c.dropped[s.v]
	return s.before == s.after && (after.dropped || waits)
}

// noteDropped adds a member that has lost its prediction to the list of members without one. It
// removes a member that leaves or has a prediction again.
func (c *community) noteDropped(s shift, after *state) {
	switch {
	case s.before == s.after && after.dropped:
		c.drop(s.v)
	case s.after == 0 || after.profile.own != nil:
		delete(c.dropped, s.v)
	}
}

func (c *community) drop(v Vertex) {
	if c.dropped == nil {
		c.dropped = map[Vertex]struct{}{}
	}
	c.dropped[v] = struct{}{}
}

// Dropped lists the members that had a prediction of another model version and have none of the one
// that took over, in order. Their next prediction moves no count.
func (t *Tallies) Dropped(id CommunityID) []Vertex {
	return slices.Sorted(maps.Keys(t.each[id].dropped))
}

// SetDropped restores the list that Dropped returned.
func (t *Tallies) SetDropped(id CommunityID, members []Vertex) {
	c := t.each[id]
	c.dropped = nil
	for _, v := range members {
		c.drop(v)
	}
}

// start allocates the movement of a count.
func (p *Progress) start(classes int) {
	if p.Counted == nil {
		p.Counted, p.Squares = make([]float64, classes), make([]float64, classes)
		p.Composition = make([]float64, classes)
	}
}

// apart reports whether two predictions are as far from each other as countedLeast.
func apart(a, b []uint32) bool {
	distance := uint64(0)
	for k, x := range a {
		distance += uint64(max(x, b[k]) - min(x, b[k]))
	}
	return float64(distance) >= 2*countedLeast*event.One
}

// beyond returns by how much a member with a prediction exceeds the mean of a class.
func beyond(own []uint32, class int, mean float64, multiplicity uint32) float64 {
	if own == nil {
		return 0
	}
	return float64(multiplicity) * (float64(own[class])/event.One - mean)
}
