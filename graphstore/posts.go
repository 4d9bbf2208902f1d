package graphstore

import (
	"cmp"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// eventPrediction is a prediction as events assert it, with its evidence and its end.
type eventPrediction struct {
	units    []uint32 // nil: there is none
	version  uint32   // noVersion: there is none
	evidence Evidence
	end      event.Time
}

// noEventPrediction is a withdrawn prediction.
var noEventPrediction = eventPrediction{version: noVersion, end: forever}

// assertPosts passes the posts of the batch to the labelling and the edges.
func (s *Store) assertPosts(b *event.Batch) {
	for i := range b.Posts {
		e := &b.Posts[i]
		reason, detail := s.labelling.refuseUnits(e.Units, e.Version)
		if reason == "" {
			reason, detail = s.refusePost(e)
		}
		if reason != "" {
			s.step.refuse(event.KindPost, i, reason, detail)
			continue
		}
		author, _ := s.vertex(e.Author)
		if !s.except.holds(s.attributes, author) {
			s.labelling.assertPost(&s.step, author, i)
		}
		end := s.labelling.postEdgeEnd(&s.step, e)
		for _, other := range [...]event.Reference{e.ReplyTo, e.RepostOf} {
			if other.Given && other.ID != e.Author && end > s.step.endsBy {
				v, _ := s.vertex(other.ID)
				s.edges.mention(edgeKeyOf(author, v), uint32(i), end)
			}
		}
	}
}

// refusePost returns the reason to refuse a post, apart from its probabilities; empty if it is
// valid.
func (s *Store) refusePost(e *event.Post) (event.Reason, string) {
	ids := []event.ID{e.Author}
	for _, other := range [...]event.Reference{e.ReplyTo, e.RepostOf} {
		if other.Given && !slices.Contains(ids, other.ID) {
			ids = append(ids, other.ID)
		}
	}
	for _, id := range ids {
		if len(id.Name) > IDBytesMax {
			return event.BadID, "vertex"
		}
	}
	switch {
	case !goodWeight(e.Weight):
		return event.BadWeight, ""
	case !s.verticesFit(len(ids)) && !s.verticesFit(s.countNew(ids...)):
		return event.LimitExceeded, "vertices"
	}
	return "", ""
}

// assertPost records that post event at, which is valid, is by v.
func (l *labelling) assertPost(p *step, v Vertex, at int) {
	entry := entry{uint64(v), uint32(len(p.batch.Predictions) + at)}
	if !l.admit(l.versions.index[p.batch.Posts[at].Version]) {
		l.predictions = append(l.predictions, entry)
		return
	}
	l.pending = append(l.pending, entry)
	l.models.seen, l.models.came = p.now, true
}

// postEdgeEnd returns when the edges of a post end.
func (l *labelling) postEdgeEnd(p *step, e *event.Post) event.Time {
	ttl := cmp.Or(e.TTL, l.config.Evidence.EdgeTTL)
	return p.endOf(e.Time, 0, max(ttl, 0))
}

// fold returns the prediction of a vertex after the assertions of a batch, in log order: the last
// plain prediction replaces held, and the posts are added to it. Entries of posts come after the
// others. The units may be scratch memory, valid until the next call.
func (l *labelling) fold(p *step, entries []entry, held eventPrediction) eventPrediction {
	posts := len(entries)
	for posts > 0 && p.isPost(entries[posts-1]) {
		posts--
	}
	if posts > 0 {
		held = l.predicts(p, entries[posts-1]).after(held)
	}
	if entries = entries[posts:]; len(entries) == 0 {
		return held
	}
	m := &l.mean
	if held.evidence.Epoch == ageless { // from here on it ages as posts do
		e := &held.evidence
		e.Weight, e.Epoch = l.config.Evidence.weighPost(e.Time)
	}
	m.startFrom(l.config.Classes, held)
	for _, e := range entries {
		if l.counts(p, e) {
			_, epoch := l.config.Evidence.weighPost(p.ownTime(p.post(e).Time))
			m.raise(epoch)
		}
	}
	for _, e := range entries {
		if !l.counts(p, e) {
			continue
		}
		post := p.post(e)
		t := p.ownTime(post.Time)
		weight, epoch := l.config.Evidence.weighPost(t)
		m.add(post.Units, weight, epoch)
		held.version = l.versions.index[post.Version]
		held.evidence.Time = max(held.evidence.Time, t)
		held.evidence.Changed = p.now
		held.evidence.Observations++
		end := p.endOf(post.Time, 0, l.config.Windows.Predictions)
		if held.end = max(held.end, end); held.units == nil && m.first {
			held.end = end
		}
		m.first = false
	}
	return m.result(held)
}

// after returns a plain prediction that takes the place of held, with its observations counted.
func (s eventPrediction) after(held eventPrediction) eventPrediction {
	switch {
	case s.units == nil, s.evidence.Observations > 0:
	case held.units == nil || held.version != s.version:
		s.evidence.Observations = 1
	case slices.Equal(held.units, s.units):
		s.evidence.Observations = held.evidence.Observations
	default:
		s.evidence.Observations = held.evidence.Observations + 1
	}
	return s
}

// counts reports whether a post is evidence: the graph had space for its edges, and it is within
// the window.
func (l *labelling) counts(p *step, e entry) bool {
	post := p.post(e)
	return p.endOf(post.Time, 0, l.config.Windows.Predictions) > p.endsBy &&
		!slices.Contains(p.overLimitPosts, e.at-uint32(len(p.batch.Predictions)))
}

// isPost reports whether an entry is a post.
func (p *step) isPost(e entry) bool {
	return e.at != absent && int(e.at) >= len(p.batch.Predictions)
}

// post returns the post of an entry.
func (p *step) post(e entry) *event.Post {
	return &p.batch.Posts[int(e.at)-len(p.batch.Predictions)]
}

// mean adds observations to a prediction. Sums are integers, so the observations of one step may
// come in any order.
type mean struct {
	sums   []uint64 // K, in units of 2^-30 times those of weight
	weight uint64
	epoch  int64
	first  bool // nothing has been added yet

	shares []float64 // K, scratch
	units  []uint32  // K, the result
}

// weightMax bounds a sum of weights, so that its products with units fit 64 bits.
const weightMax = 1 << 32

// startFrom starts from a prediction, or from none.
func (m *mean) startFrom(classes int, held eventPrediction) {
	if len(m.sums) != classes {
		m.sums = make([]uint64, classes)
		m.shares = make([]float64, classes)
		m.units = make([]uint32, classes)
	}
	clear(m.sums)
	m.weight = uint64(held.evidence.Weight)
	m.epoch = held.evidence.Epoch
	m.first = true
	for k, unit := range held.units {
		m.sums[k] = uint64(unit) * m.weight
	}
	if m.weight == 0 {
		m.epoch = math.MinInt64
	}
}

// raise rescales the sums to a later epoch.
func (m *mean) raise(epoch int64) {
	if epoch <= m.epoch {
		return
	}
	by := uint64(epoch) - uint64(m.epoch)
	if m.epoch = epoch; by > 63 {
		by = 63
	}
	m.weight >>= by
	for k := range m.sums {
		m.sums[k] >>= by
	}
	if m.weight == 0 { // too old to count
		clear(m.sums)
	}
}

// add adds an observation of the epoch of the sums, or of an earlier one.
func (m *mean) add(units []uint32, weight uint32, epoch int64) {
	by := min(uint64(m.epoch)-uint64(epoch), 63)
	w := uint64(weight) >> by
	if m.weight+w >= weightMax {
		m.raise(m.epoch + 1)
		w >>= 1
	}
	m.weight += w
	for k, unit := range units {
		m.sums[k] += uint64(unit) * w
	}
}

// result returns held with the prediction that the sums give.
func (m *mean) result(held eventPrediction) eventPrediction {
	if m.first {
		return held
	}
	total := uint64(0)
	for _, sum := range m.sums {
		total += sum
	}
	for k, sum := range m.sums {
		m.shares[k] = float64(sum) / float64(total)
	}
	if p := event.Quantise(m.units, m.shares); p != nil {
		panic("graphstore: the mean of posts: " + p.Error()) // they are distributions
	}
	held.units = m.units
	held.evidence.Weight = uint32(m.weight)
	held.evidence.Epoch = m.epoch
	return held
}
