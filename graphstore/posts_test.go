package graphstore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// observation is one prediction or post of a vertex.
type observation struct {
	at    event.Time
	units []uint32
	plain bool // a prediction, and not a post
}

// queues keep every observation of each vertex, as the store does not.
type queues map[event.ID][]observation

// apply adds the events of a batch: an erasure, then predictions, then posts.
func (q queues) apply(b *event.Batch) {
	own := func(t event.Time) event.Time {
		if t == 0 || t > b.Time {
			return b.Time
		}
		return t
	}
	for _, e := range b.Vertices {
		if e.Erase {
			delete(q, e.Vertex)
		}
	}
	for _, e := range b.Predictions {
		delete(q, e.Vertex)
		if e.Units != nil {
			q[e.Vertex] = []observation{{own(e.Time), e.Units, true}}
		}
	}
	for _, e := range b.Posts {
		q[e.Author] = append(q[e.Author], observation{own(e.Time), e.Units, false})
	}
}

// mean64 returns the weighted mean of the observations of a vertex, and their mass at a time.
func mean64(
	list []observation, classes int, halfLife time.Duration, at event.Time,
) ([]float64, float64) {
	shares, mass := make([]float64, classes), 0.0
	plain := len(list) == 1 && list[0].plain
	switch {
	case halfLife < 0 || plain && (halfLife == 0 || list[0].at == 0):
		halfLife = 0
	case halfLife == 0:
		halfLife = postHalfLifeDefault
	}
	for _, o := range list {
		weight := 1.0
		if halfLife > 0 {
			weight = math.Exp2(-float64(at-o.at) / float64(halfLife))
		}
		mass += weight
		for k, unit := range o.units {
			shares[k] += weight * float64(unit) / event.One
		}
	}
	for k := range shares {
		shares[k] /= mass
	}
	if halfLife == 0 {
		mass = min(1, float64(len(list)))
	}
	return shares, min(1, mass)
}

// The prediction of an author must be the mean of all that was ever said, weighted by age,
// and its mass the sum of the weights, however late some of it came.
func TestPostsMakeTheWeightedMeanOfTheirQueue(t *testing.T) {
	for seed := range uint64(16) {
		half := []time.Duration{-1, 20 * time.Second, 10 * time.Minute, 0}[seed%4]
		stream := eventtest.New(seed, eventtest.Config{Posts: true, Erase: true, Withdraw: true})
		s := newTestStore(t, Config{
			Classes: stream.Config.Classes, Evidence: EvidenceConfig{HalfLife: half},
		})
		q := queues{}
		for range 80 {
			b := stream.Next()
			if _, refused := s.Apply(b); len(refused) > 0 {
				t.Fatalf("seed %d: refused %+v", seed, refused)
			}
			q.apply(b)
			if err := q.compare(s, half, b.Time); err != nil {
				t.Fatalf("seed %d, position %d: %v", seed, b.Last, err)
			}
			if err := s.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// compare compares every prediction of a store with its queue.
func (q queues) compare(s *Store, half time.Duration, now event.Time) error {
	w := s.View()
	for v := range Vertex(w.Vertices()) {
		list := q[w.ID(v)]
		if w.Erased(v) {
			list = nil
		}
		units := w.Prediction(v)
		if (units == nil) != (len(list) == 0) {
			return fmt.Errorf("%v: %d observations make %v", w.ID(v), len(list), units)
		}
		later := event.Time(max(half, time.Second))
		for _, at := range []event.Time{now, now + later, now + 7*later} {
			shares, mass := mean64(list, s.config.Classes, half, at)
			got := 0.0
			if units != nil {
				got = s.config.Evidence.mass(w.Evidence(v), at)
			}
			if math.Abs(got-mass) > 1e-4*mass {
				return fmt.Errorf("%v: mass %v, want %v", w.ID(v), got, mass)
			}
			for k := range units {
				if got := float64(units[k]) / event.One; math.Abs(got-shares[k]) > 1e-4 {
					return fmt.Errorf("%v: class %d has %v, want %v", w.ID(v), k, got, shares[k])
				}
			}
		}
		newest := event.Time(0)
		for _, o := range list {
			newest = max(newest, o.at)
		}
		if e := w.Evidence(v); e.Time != newest || e.Changed > now {
			return fmt.Errorf("%v: evidence %+v, newest %v, now %v", w.ID(v), e, newest, now)
		}
	}
	return nil
}

// Posts of one step may stand in any order.
func TestPostsOfAStepMayComeInAnyOrder(t *testing.T) {
	for seed := range uint64(10) {
		config := eventtest.Config{
			Posts:     true,
			Weighted:  true,
			EventsMax: 60,
			Vertices:  6,
			TTL:       true,
		}
		stream := eventtest.New(seed, config)
		rng := rand.New(rand.NewPCG(seed, 1))
		stores := []*Store{}
		for range 2 {
			s := newTestStore(t, Config{
				Classes:  stream.Config.Classes,
				Evidence: EvidenceConfig{HalfLife: 7 * time.Second, EdgeTTL: 40 * time.Second},
			})
			mentionAll(s, stream, 6)
			stores = append(stores, s)
		}
		for range 40 {
			b := stream.Next()
			stores[0].Apply(b)
			rng.Shuffle(
				len(b.Posts),
				func(i, j int) { b.Posts[i], b.Posts[j] = b.Posts[j], b.Posts[i] },
			)
			stores[1].Apply(b)
		}
		for _, s := range stores {
			s.Compact()
		}
		if part := differ(stores[0], stores[1]); part != "" {
			t.Fatalf("seed %d: %s", seed, part)
		}
	}
}

// mentionAll gives every vertex of a stream its index.
func mentionAll(s *Store, stream *eventtest.Stream, n int) {
	var b event.Batch
	for v := range n {
		b.Vertices = append(b.Vertices, event.Vertex{Vertex: stream.ID(v)})
	}
	s.Apply(&b)
}

// The delta must list exactly the vertices with changed evidence, with the evidence before,
// also after a switch of the model version.
func TestDeltaListsEvidence(t *testing.T) {
	switched := 0
	for seed := range uint64(16) {
		stream := eventtest.New(seed, eventtest.Config{
			Posts: true, Erase: true, RollOuts: true, TTL: true, Withdraw: true, Vertices: 12,
		})
		s := newTestStore(t, Config{
			Classes: stream.Config.Classes, SwitchAt: .5,
			Evidence: EvidenceConfig{HalfLife: 10 * time.Second},
			Windows:  Windows{Predictions: time.Minute},
		})
		before := map[Vertex]Evidence{}
		for range 80 {
			active, _ := s.View().ActiveVersion()
			delta, _ := s.Apply(stream.Next())
			if now, _ := s.View().ActiveVersion(); now != active {
				switched++
			}
			var got, want []EvidenceChange
			got = append(got, delta.Evidence...)
			for v := range Vertex(s.View().Vertices()) {
				now := s.View().Evidence(v)
				if now != before[v] {
					want = append(want, EvidenceChange{v, before[v]})
				}
				before[v] = now
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: evidence changed by %+v, want %+v", seed, got, want)
			}
			if err := s.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if s.View().Vertices()%3 == 0 { // saved and loaded, it goes on alike
				loaded := load(t, s.config, save(t, s))
				if part := differ(s, loaded); part != "" {
					t.Fatalf("seed %d: %s", seed, part)
				}
				s = loaded
			}
		}
	}
	if switched < 10 {
		t.Errorf("only %d switches", switched)
	}
}

// postsOf returns a batch of posts at a time.
func postsOf(at event.Time, posts ...event.Post) *event.Batch {
	b := &event.Batch{Time: at, Posts: posts}
	for i := range b.Posts {
		p := &b.Posts[i]
		p.Units, p.Index = []uint32{event.One, 0, 0}, uint32(i)
		if p.Weight == 0 {
			p.Weight = 1
		}
		if p.Time == 0 {
			p.Time = at
		}
	}
	return b
}

// to is a reference to a vertex.
func to(id uint64) event.Reference { return event.Reference{ID: event.NumberID(id), Given: true} }

// by is the author of a number.
func by(id uint64) event.ID { return event.NumberID(id) }

// An answer and a repeat are edges with a time to live. An edge that is there keeps its
// weight and end where they are greater; one to oneself is none.
func TestPostsAssertEdges(t *testing.T) {
	s := newTestStore(t, Config{Evidence: EvidenceConfig{EdgeTTL: 100}})
	weight := func(u, v uint64) float64 {
		a, _ := s.View().Lookup(event.NumberID(u))
		b, known := s.View().Lookup(event.NumberID(v))
		if !known {
			return 0
		}
		return s.weight(a, b)
	}
	expect := func(what string, u, v uint64, want float64) {
		t.Helper()
		if got := weight(u, v); got != want {
			t.Errorf("%s: edge %d-%d weighs %v, want %v", what, u, v, got, want)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	s.Apply(&event.Batch{Time: 1000, Edges: []event.Edge{
		{Src: by(1), Dst: by(2), Weight: 3, Time: 1000},
	}})
	s.Apply(postsOf(1000,
		event.Post{Author: by(1), ReplyTo: to(2), RepostOf: to(3)},
		event.Post{Author: by(4), ReplyTo: to(4)},
		event.Post{Author: by(5), ReplyTo: to(6), Weight: 2, TTL: 30},
		event.Post{Author: by(6), ReplyTo: to(5), TTL: 50},
		event.Post{Author: by(7), ReplyTo: to(8), Time: 850}, // its edge has ended
	))
	expect("asserted before", 1, 2, 3)
	expect("repeat", 1, 3, 1)
	expect("two answers", 5, 6, 2)
	if w := weight(7, 8); w != 0 {
		t.Errorf("an edge that has ended weighs %v", w)
	}
	if v, known := s.View().Lookup(by(4)); !known || s.View().Degree(v) != 0 {
		t.Errorf("an answer to oneself made an edge")
	}
	s.Apply(&event.Batch{Time: 1049})
	expect("until the later end", 5, 6, 2)
	s.Apply(&event.Batch{Time: 1050})
	expect("after the later end", 5, 6, 0)
	s.Apply(&event.Batch{Time: 1100})
	expect("after the configured time", 1, 3, 0)
	expect("asserted for ever", 1, 2, 3)
	delta, _ := s.Apply(&event.Batch{
		Time: 1200, Edges: []event.Edge{{Src: by(1), Dst: by(2), Remove: true}},
		Posts: postsOf(1200, event.Post{Author: by(2), ReplyTo: to(1), Weight: 3}).Posts,
	})
	expect("removed and asserted in one step", 1, 2, 3)
	if len(delta.Edges) != 0 || len(delta.Endpoints) != 0 {
		t.Errorf("nothing changed, and the delta has %+v", delta.Edges)
	}
	s.Apply(&event.Batch{Time: 1300})
	expect("and ends as the post says", 1, 2, 0)
}

// Bad posts are refused and change nothing.
func TestBadPostsAreRefused(t *testing.T) {
	s := newTestStore(t, Config{
		Limits:   event.Limits{Vertices: 5, Edges: 1},
		Evidence: EvidenceConfig{HalfLife: time.Hour},
	})
	long := event.ParseID(string(make([]byte, IDBytesMax+1)))
	s.Apply(postsOf(1000, event.Post{Author: by(1), ReplyTo: to(2)}))
	b := postsOf(2000,
		event.Post{Author: by(3), Version: DerivedPrefix + "x"},
		event.Post{Author: by(3), Weight: 0.3},
		event.Post{Author: long},
		event.Post{Author: by(3), ReplyTo: event.Reference{ID: long, Given: true}},
		event.Post{Author: by(1), RepostOf: to(4)}, // no room for a second edge
		event.Post{Author: by(5), ReplyTo: to(6), RepostOf: to(7)},
		event.Post{Author: by(3)},
		event.Post{Author: by(3)},
	)
	b.Posts[6].Units, b.Posts[7].Units = []uint32{1, 2, 3}, []uint32{event.One}
	before := s.View().Evidence(0)
	delta, refused := s.Apply(b)
	want := []string{
		"0 bad-value", "1 bad-weight", "2 bad-id", "3 bad-id", "5 limit-exceeded",
		"6 not-normal", "7 wrong-classes", "4 limit-exceeded",
	}
	var got []string
	for _, r := range refused {
		got = append(got, fmt.Sprintf("%d %s", r.Index, r.Reason))
	}
	if !slices.Equal(got, want) {
		t.Errorf("refused %v, want %v", got, want)
	}
	if len(delta.Predictions)+len(delta.Evidence)+len(delta.Edges) > 0 ||
		s.View().Evidence(0) != before {
		t.Errorf("refused posts changed %+v", delta)
	}
}

// A person's posts go with the person, and an index that is given away has none.
func TestErasureTakesPosts(t *testing.T) {
	s := newTestStore(t, Config{})
	s.Apply(postsOf(1000, event.Post{Author: by(1), ReplyTo: to(2)}))
	s.Apply(&event.Batch{Time: 1001, Vertices: []event.Vertex{{Vertex: by(1), Erase: true}}})
	if e := s.View().Evidence(0); e != (Evidence{}) {
		t.Errorf("an erased author has %+v", e)
	}
	s.Apply(&event.Batch{Time: 1002, Vertices: []event.Vertex{{Vertex: by(9)}}})
	if e := s.View().Evidence(0); e != (Evidence{}) {
		t.Errorf("the next vertex has %+v", e)
	}
}

// Very many posts of one author do not overflow, and the mean goes on.
func TestManyPostsOfOneAuthor(t *testing.T) {
	s := newTestStore(t, Config{})
	for range 9 {
		b := &event.Batch{Time: 1000}
		for i := range 1 << 16 {
			units := []uint32{event.One, 0, 0}
			if i%4 == 0 {
				units = []uint32{0, event.One, 0}
			}
			b.Posts = append(
				b.Posts,
				event.Post{Author: by(1), Units: units, Weight: 1, Time: 1000},
			)
		}
		s.Apply(b)
	}
	if got := float64(s.View().Prediction(0)[0]) / event.One; math.Abs(got-.75) > 1e-6 {
		t.Errorf("three quarters of the posts are of class 0, the mean is %v", got)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// A vertex counts its different predictions and its posts, of one model version. One that is said
// again says nothing new.
func TestObservationsAreCounted(t *testing.T) {
	s := newTestStore(t, Config{Classes: 2})
	at := event.Position(0)
	say := func(want uint32, version string, first uint32, posts int) {
		t.Helper()
		at++
		b := &event.Batch{First: at, Last: at, Time: event.Time(at)}
		units := []uint32{first, event.One - first}
		for i := range posts {
			b.Posts = append(b.Posts, event.Post{
				Author: by(1), Units: units, Version: version, Weight: 1, Index: uint32(i),
			})
		}
		if posts == 0 {
			b.Predictions = []event.Prediction{{Vertex: by(1), Units: units, Version: version}}
		}
		if _, refused := s.Apply(b); len(refused) > 0 {
			t.Fatalf("refused %+v", refused)
		}
		v, _ := s.View().Lookup(by(1))
		if got := s.View().Evidence(v).Observations; got != want {
			t.Errorf("%d observations, want %d", got, want)
		}
	}
	say(1, "a", event.One, 0)
	say(1, "a", event.One, 0)
	say(2, "a", event.One/2, 0)
	say(5, "a", event.One/4, 3)
	say(6, "a", 0, 0)
}
