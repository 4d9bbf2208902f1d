package simulate

import (
	"time"

	"gqlstream/ingest/event"
)

// due is a vertex and the kind of report that is due.
type due uint32

// Kinds of reports.
const (
	dueLabel      = 0
	duePrediction = 1
)

// queue holds the reports due in this and later ticks, by tick.
type queue struct {
	due  map[int64][]due
	tick int64
	done int // entries of this tick that have been reported
}

// open turns to the next tick.
func (q *queue) open() {
	delete(q.due, q.tick)
	q.tick++
	q.done = 0
}

// add makes v due some ticks from now.
func (q *queue) add(v uint32, what due, ticks int64) {
	q.due[q.tick+ticks] = append(q.due[q.tick+ticks], due(v)<<1|what)
}

// delay draws a number of ticks, uniform from zero to twice a mean time.
func (s *Network) delay(mean time.Duration) int64 {
	if mean == 0 {
		return 0
	}
	return (s.rng.Int64N(int64(2*mean)) + 1) / int64(s.config.StepEvery)
}

// report emits the next event that is due in this tick, if there is one.
func (s *Network) report() bool {
	now := s.queue.due[s.queue.tick]
	if s.queue.done >= len(now) {
		return false
	}
	item := now[s.queue.done]
	s.queue.done++
	if v := uint32(item >> 1); item&1 == dueLabel {
		s.label(v)
	} else {
		s.predict(v, event.Reference{})
	}
	return true
}

// label emits the answer of v to a question now.
func (s *Network) label(v uint32) {
	p := &s.network.vertices[v]
	p.labelled = true
	s.position++
	s.batch.Labels = append(s.batch.Labels, event.Label{
		Vertex: event.NumberID(uint64(v)), Class: event.Class(p.class),
		Time: s.now, Position: s.position,
	})
}

// predict emits the classifier's output for v now: a prediction, or a post of v, which may
// answer another vertex.
func (s *Network) predict(v uint32, answers event.Reference) {
	id := event.NumberID(uint64(v))
	units := s.expert.judge(&s.network, v, s.batch.Units(s.config.Classes))
	s.position++
	if s.config.Posts {
		post := event.Post{
			Author: id, Units: units, Version: s.version, ReplyTo: answers,
			Weight: 1, Time: s.now, Position: s.position,
		}
		if answers.Given {
			post.TTL = s.edgeLife()
		}
		s.batch.Posts = append(s.batch.Posts, post)
		return
	}
	s.batch.Predictions = append(s.batch.Predictions, event.Prediction{
		Vertex: id, Units: units, Version: s.version, Time: s.now, Position: s.position,
	})
}

// edgeLife draws how long an edge lasts: half of the changes drop one of the existing edges. It is
// 0, for ever, where nothing changes.
func (s *Network) edgeLife() time.Duration {
	if s.config.Activity == 0 {
		return 0
	}
	edges := s.config.EdgesPerVertex * float64(len(s.network.vertices))
	mean := 2 * edges / s.config.Activity * float64(time.Second)
	return max(s.config.StepEvery, time.Duration(mean*s.rng.ExpFloat64()))
}

// emitEdge emits an edge that was made or dropped. Among posts, an edge is an answer that
// ends by itself.
func (s *Network) emitEdge(u, v uint32, remove bool) {
	if s.config.Posts {
		if !remove {
			s.predict(u, event.Reference{ID: event.NumberID(uint64(v)), Given: true})
		}
		return
	}
	s.position++
	s.batch.Edges = append(s.batch.Edges, event.Edge{
		Src: event.NumberID(uint64(min(u, v))), Dst: event.NumberID(uint64(max(u, v))),
		Weight: 1, Remove: remove, Time: s.now, Position: s.position,
	})
}
