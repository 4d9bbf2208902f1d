// Package eventtest makes random logs for tests: seeded, valid, and nasty where
// it matters. Hubs, edges asserted again and again, reweights, deletes down to
// isolation, label churn, model versions that come and go, members that join and
// leave with multiplicities, attributes that flip, erasures.
package eventtest

import (
	"math/rand/v2"
	"strconv"
	"time"

	"gqlstream/ingest/event"
)

// Config shapes a log. Zero fields get the default in brackets.
type Config struct {
	Classes     int  // [2 to 4, by seed]
	Vertices    int  // [5 to 60, by seed] names that can occur
	Communities int  // [3] explicit ones, named c0, c1, ...
	EventsMax   int  // [1 to 60, by seed] events of a batch
	Weighted    bool // edges have weights other than one
	Erase       bool // vertices are erased now and then
	TTL         bool // some edges, labels and predictions expire
	SelfLoops   bool // some edges lead from a vertex to itself, which must be refused
	Withdraw    bool // some predictions are withdrawn, which no wire form can say
	Audits      bool // some labels are of the role audit
	RollOuts    bool // one model version replaces another now and then
	Posts       bool // some predictions come as posts
	Attributes  bool // nearly all vertices have attributes, which change now and then

	Times uint32 // [1] every multiplicity, of 1 to 5, is so many times as large
}

// Stream makes the batches of one log.
type Stream struct {
	Config     Config
	rand       *rand.Rand
	edges      [][2]int // asserted and not removed since, with repeats
	next       event.Position
	now        event.Time
	attributed int // vertices that giveAttributes gave attributes
	model      int // version in use; with RollOuts the next one arrives beside it
}

// New returns the log of a seed.
func New(seed uint64, c Config) *Stream {
	r := rand.New(rand.NewPCG(seed, 0x67716c))
	if c.Classes == 0 {
		c.Classes = 2 + r.IntN(3)
	}
	if c.Vertices == 0 {
		c.Vertices = 5 + r.IntN(56)
	}
	if c.Communities == 0 {
		c.Communities = 3
	}
	if c.EventsMax == 0 {
		c.EventsMax = 1 + r.IntN(60)
	}
	return &Stream{Config: c, rand: r, next: 1, now: event.Time(1_700_000_000 * time.Second)}
}

// Next returns the next batch, the caller's to keep. One in three ends at an
// emission boundary.
func (s *Stream) Next() *event.Batch {
	b := &event.Batch{First: s.next, Emit: s.rand.IntN(3) == 0}
	if s.Config.Erase && s.rand.IntN(12) == 0 {
		b.Vertices = append(b.Vertices,
			event.Vertex{Vertex: s.ID(s.vertex()), Erase: true, Position: s.next, Time: s.now})
		s.next++
	} else {
		s.giveAttributes(b)
		for range 1 + s.rand.IntN(s.Config.EventsMax) {
			s.now += event.Time(time.Duration(s.rand.IntN(1000)) * time.Millisecond)
			s.add(b)
			s.next++
		}
	}
	b.Last, b.Time = s.next-1, s.now
	return b
}

func (s *Stream) add(b *event.Batch) {
	switch n := s.rand.IntN(100); {
	case n < 40:
		b.Edges = append(b.Edges, s.assertEdge())
	case n < 58:
		b.Edges = append(b.Edges, s.removeEdge())
	case n < 68:
		b.Labels = append(b.Labels, s.label())
	case n < 82:
		if s.Config.Posts && s.rand.IntN(2) == 0 {
			b.Posts = append(b.Posts, s.post())
			return
		}
		b.Predictions = append(b.Predictions, s.prediction())
	case n < 94:
		b.Members = append(b.Members, s.member())
	default:
		b.Vertices = append(b.Vertices, s.attributes())
	}
}

// vertex picks a vertex, low numbers far more often: those become hubs.
func (s *Stream) vertex() int {
	if s.rand.IntN(3) == 0 {
		return s.rand.IntN(min(3, s.Config.Vertices))
	}
	return s.rand.IntN(s.Config.Vertices)
}

// ID names one of the vertices 0 to Config.Vertices-1: every other one by number,
// the rest by text.
func (s *Stream) ID(v int) event.ID {
	if v%2 == 0 {
		return event.NumberID(uint64(v))
	}
	return event.ParseID("v" + strconv.Itoa(v))
}

func (s *Stream) assertEdge() event.Edge {
	u, v := s.vertex(), s.vertex()
	if len(s.edges) > 0 && s.rand.IntN(4) == 0 { // one that is there already
		e := s.edges[s.rand.IntN(len(s.edges))]
		u, v = e[1], e[0]
	}
	if s.Config.SelfLoops && s.rand.IntN(40) == 0 {
		return event.Edge{Src: s.ID(u), Dst: s.ID(u), Weight: 1, Time: s.now, Position: s.next}
	}
	if u == v {
		v = (u + 1) % s.Config.Vertices
	}
	s.edges = append(s.edges, [2]int{u, v})
	e := event.Edge{Src: s.ID(u), Dst: s.ID(v), Weight: 1, Time: s.now, Position: s.next}
	if s.Config.Weighted && s.rand.IntN(2) == 0 {
		e.Weight = event.RoundWeight(0.01 + 5*s.rand.Float64())
	}
	e.TTL = s.ttl()
	return e
}

// ttl draws a time to live: none for most.
func (s *Stream) ttl() time.Duration {
	if s.Config.TTL && s.rand.IntN(4) == 0 {
		return time.Duration(1+s.rand.IntN(20)) * time.Second
	}
	return 0
}

func (s *Stream) removeEdge() event.Edge {
	u, v := s.vertex(), s.vertex()
	if n := len(s.edges); n > 0 && s.rand.IntN(8) > 0 {
		i := s.rand.IntN(n)
		u, v = s.edges[i][0], s.edges[i][1]
		s.edges[i] = s.edges[n-1]
		s.edges = s.edges[:n-1]
	}
	if u == v {
		v = (u + 1) % s.Config.Vertices
	}
	return event.Edge{Src: s.ID(u), Dst: s.ID(v), Remove: true, Time: s.now, Position: s.next}
}

func (s *Stream) label() event.Label {
	l := event.Label{
		Vertex: s.ID(s.vertex()), Class: event.Class(s.rand.IntN(s.Config.Classes)),
		Time: s.now, Position: s.next,
	}
	switch s.rand.IntN(5) {
	case 0:
		l.Class = event.NoClass
	case 1:
		l.Role = event.Train
	case 2:
		if s.Config.Audits {
			l.Role, l.Pi = event.Audit, event.PiMin+s.rand.Uint32N(event.One-event.PiMin+1)
		}
	}
	if l.Class != event.NoClass {
		l.TTL = s.ttl()
	}
	return l
}

func (s *Stream) prediction() event.Prediction {
	p := event.Prediction{
		Vertex: s.ID(s.vertex()), Units: s.units(), Version: "m" + strconv.Itoa(s.version()),
		Time: s.now, Position: s.next,
	}
	p.TTL = s.ttl()
	if s.Config.Withdraw && s.rand.IntN(5) == 0 {
		p.Units, p.Version, p.TTL = nil, "", 0
	}
	return p
}

// post draws a post, some of them late and some an answer or a repeat, now and then of the
// author's own.
func (s *Stream) post() event.Post {
	p := event.Post{
		Author: s.ID(s.vertex()), Units: s.units(), Version: "m" + strconv.Itoa(s.version()),
		Weight: 1, Time: s.now, Position: s.next,
	}
	if s.rand.IntN(4) == 0 {
		p.Time -= event.Time(s.rand.IntN(30)) * event.Time(time.Second)
	}
	if s.rand.IntN(3) == 0 {
		p.ReplyTo = event.Reference{ID: s.ID(s.vertex()), Given: true}
	}
	if s.rand.IntN(4) == 0 {
		p.RepostOf = event.Reference{ID: s.ID(s.vertex()), Given: true}
	}
	if s.Config.Weighted && s.rand.IntN(2) == 0 {
		p.Weight = event.RoundWeight(0.01 + 5*s.rand.Float64())
	}
	p.TTL = s.ttl()
	return p
}

// version draws the version in use or, twice as often, the next, which comes into
// use some time. One in sixteen is an earlier one's stray.
func (s *Stream) version() int {
	if !s.Config.RollOuts {
		return 0
	}
	switch n := s.rand.IntN(16); {
	case n == 0:
		return max(0, s.model-1)
	case n == 1:
		s.model++
		return s.model
	default:
		return s.model + min(1, n%3)
	}
}

// units draws a probability vector; now and then all mass is on one class.
func (s *Stream) units() []uint32 {
	units := make([]uint32, s.Config.Classes)
	left := uint32(event.One)
	if s.rand.IntN(4) > 0 {
		for i := range units[1:] {
			units[i] = s.rand.Uint32N(left + 1)
			left -= units[i]
		}
	}
	units[s.rand.IntN(len(units))] += left
	return units
}

func (s *Stream) member() event.Member {
	m := event.Member{
		Community: "c" + strconv.Itoa(s.rand.IntN(s.Config.Communities)), Vertex: s.ID(s.vertex()),
		Multiplicity: 1, Time: s.now, Position: s.next,
	}
	switch s.rand.IntN(6) {
	case 0, 1:
		m.Multiplicity = 0
	case 2:
		m.Multiplicity = 1 + s.rand.Uint32N(5)
	}
	m.Multiplicity *= max(s.Config.Times, 1)
	return m
}

// giveAttributes gives a third of the vertices attributes, in turn.
func (s *Stream) giveAttributes(b *event.Batch) {
	for v := 0; s.Config.Attributes && v < s.Config.Vertices/3; v++ {
		e := s.attributes()
		e.Vertex = s.ID(s.attributed % s.Config.Vertices)
		b.Vertices = append(b.Vertices, e)
		s.attributed++
		s.next++
	}
}

func (s *Stream) attributes() event.Vertex {
	value := event.Value{Kind: event.StringValue, Text: []string{"de", "fr", "en"}[s.rand.IntN(3)]}
	if s.rand.IntN(6) == 0 {
		value = event.Value{}
	}
	return event.Vertex{
		Vertex: s.ID(s.vertex()),
		Attributes: []event.Attribute{
			{Key: "language", Value: value},
			{Key: "age", Value: event.Value{Kind: event.NumberValue, Number: float64(s.next % 37)}},
		},
		Time: s.now, Position: s.next,
	}
}
