package simulate

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// smallSimulation is a network that a test can afford to run whole.
func smallSimulation(seed uint64) Config {
	c := DefaultConfig()
	c.Seed, c.Vertices, c.Communities = seed, 2000, 5
	c.Duration, c.JumpEvery, c.DriftPeriod = 20*time.Second, 5*time.Second, 10*time.Second
	return c
}

// simulate runs a simulation to its end, or for the given number of steps, and
// hands out every batch.
func simulate(t testing.TB, c Config, visit func(*Network, *event.Batch)) *Network {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var b event.Batch
	for {
		err := s.Next(context.Background(), &b)
		if errors.Is(err, io.EOF) {
			return s
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(s, &b)
	}
}

// digest runs a simulation and returns a hash of everything it said.
func digest(t *testing.T, c Config) (sum uint64, events int) {
	h := fnv.New64a()
	simulate(t, c, func(_ *Network, b *event.Batch) {
		events += b.Events()
		fmt.Fprintln(
			h, b.First, b.Last, b.Time, b.Emit, b.Edges, b.Labels, b.Predictions, b.Posts,
			b.Members, b.Vertices,
		)
	})
	return h.Sum64(), events
}

// The same seed must give the same events, and another seed other ones.
func TestSimulationIsDecidedByItsSeed(t *testing.T) {
	first, events := digest(t, smallSimulation(7))
	if again, _ := digest(t, smallSimulation(7)); again != first {
		t.Errorf("seed 7 gave %x, then %x", first, again)
	}
	if other, _ := digest(t, smallSimulation(8)); other == first {
		t.Errorf("seeds 7 and 8 gave the same %d events", events)
	}
}

// The division into steps must not change the events.
func TestSimulationDoesNotDependOnStepSize(t *testing.T) {
	edges := func(stepEventsMax int) (all []event.Edge, predictions []event.Prediction) {
		c := smallSimulation(3)
		c.StepEventsMax = stepEventsMax
		simulate(t, c, func(_ *Network, b *event.Batch) {
			all = append(all, b.Edges...)
			for _, p := range b.Predictions {
				p.Units = slices.Clone(p.Units)
				predictions = append(predictions, p)
			}
			if over := b.Events() - stepEventsMax; over > 2+int(c.EdgesPerVertex) {
				t.Fatalf("a step of %d events, %d above the limit", b.Events(), over)
			}
		})
		return all, predictions
	}
	largeEdges, largePredictions := edges(1 << 20)
	smallEdges, smallPredictions := edges(7)
	if !slices.Equal(largeEdges, smallEdges) {
		t.Error("the edges differ")
	}
	same := func(a, b event.Prediction) bool {
		return a.Vertex == b.Vertex && a.Position == b.Position && slices.Equal(a.Units, b.Units)
	}
	if !slices.EqualFunc(largePredictions, smallPredictions, same) {
		t.Error("the predictions differ")
	}
}

// census recounts a network from the events alone.
type census struct {
	labels      map[event.ID]event.Class
	communities map[event.ID]string
	edges       map[[2]event.ID]bool
	predictions map[event.ID]event.Class // the class of the highest probability
}

func newCensus() *census {
	return &census{
		map[event.ID]event.Class{},
		map[event.ID]string{},
		map[[2]event.ID]bool{},
		map[event.ID]event.Class{},
	}
}

func (c *census) apply(t *testing.T, b *event.Batch) {
	for _, e := range b.Edges {
		key := [2]event.ID{e.Src, e.Dst}
		if c.edges[key] != e.Remove {
			t.Fatalf(
				"position %d: %v removes %v, present %v", e.Position, key, e.Remove, c.edges[key],
			)
		}
		if e.Remove {
			delete(c.edges, key)
		} else {
			c.edges[key] = true
		}
	}
	for _, m := range b.Members {
		switch {
		case m.Multiplicity == 1:
			c.communities[m.Vertex] = m.Community
		case c.communities[m.Vertex] != m.Community:
			t.Fatalf(
				"position %d: %v leaves %s but is in %q", m.Position, m.Vertex, m.Community,
				c.communities[m.Vertex],
			)
		default:
			delete(c.communities, m.Vertex)
		}
	}
	for _, l := range b.Labels {
		c.labels[l.Vertex] = l.Class
	}
	for _, p := range b.Predictions {
		sum, best := uint64(0), 0
		for k, u := range p.Units {
			sum += uint64(u)
			if u > p.Units[best] {
				best = k
			}
		}
		if sum != event.One {
			t.Fatalf("position %d: units %v sum to %d", p.Position, p.Units, sum)
		}
		c.predictions[p.Vertex] = event.Class(best)
	}
}

// shares counts the labels in a community, or of everyone.
func (c *census) shares(community string, classes int) (shares []float64, members int) {
	shares = make([]float64, classes)
	for v, own := range c.communities {
		if own == community || community == Everyone {
			shares[c.labels[v]]++
			members++
		}
	}
	for k := range shares {
		shares[k] /= float64(max(members, 1))
	}
	return shares, members
}

// With everybody in an always-true panel, the truth must equal a recount of the emitted
// labels and memberships at the end of every tick, through drift, jumps, arrivals
// and moves.
func TestTruthEqualsRecountOfEvents(t *testing.T) {
	for _, classes := range []int{2, 5} {
		c := smallSimulation(uint64(classes))
		c.Classes, c.LabelShare, c.LabelDelay, c.MoveShare = classes, 1, 0, 0.05
		c.LabelRenew = 1
		c.StepEventsMax = 100
		counted := newCensus()
		var truth []TruthRecord
		ticks := 0
		simulate(t, c, func(s *Network, b *event.Batch) {
			counted.apply(t, b)
			if ticks++; !b.Emit || ticks%11 != 0 {
				return
			}
			truth = s.AppendTruth(truth[:0])
			for _, record := range truth {
				want, members := counted.shares(record.Community, classes)
				if record.Members != members || !slices.Equal(record.Prevalence, want) {
					t.Fatalf(
						"seed %d at %v, %s: truth %v of %d members, recount %v of %d", c.Seed,
						record.Time, record.Community, record.Prevalence, record.Members, want,
						members,
					)
				}
			}
		})
		if len(counted.communities) != c.Vertices {
			t.Errorf(
				"%d classes: %d vertices arrived, want %d", classes, len(counted.communities),
				c.Vertices,
			)
		}
	}
}

// Every label must be true when it is given. Without an always-true panel it stays as it was,
// however its vertex changes its mind, until the vertex is asked again; in one it follows in
// the same tick. Shares and rates must be as configured.
func TestLabelsAreTrueAtTheirTime(t *testing.T) {
	for _, renew := range []float64{0, 1} {
		c := smallSimulation(17)
		c.LabelShare, c.LabelRate, c.LabelRenew, c.Churn = 0.2, 3, renew, 20
		counted := newCensus()
		asked := 0
		s := simulate(t, c, func(s *Network, b *event.Batch) {
			counted.apply(t, b)
			asked += len(b.Labels)
			for _, l := range b.Labels {
				if truth := s.network.vertices[l.Vertex.Number].class; event.Class(
					truth,
				) != l.Class {
					t.Fatalf("at %v %v says %d, and is %d", b.Time, l.Vertex, l.Class, truth)
				}
			}
		})
		old := 0
		for v, class := range counted.labels {
			if event.Class(s.network.vertices[v.Number].class) != class {
				old++
			}
		}
		n := float64(len(counted.labels))
		if renew == 1 && old > 0 || renew == 0 && float64(old) < 0.05*n {
			t.Errorf("renew %v: %d of %v labels are no longer true", renew, old, n)
		}
		want := c.LabelShare*float64(c.Vertices) + c.LabelRate*c.Duration.Seconds()
		if renew == 0 && math.Abs(float64(asked)-want) > 0.1*want {
			t.Errorf("%d vertices were asked, want %v", asked, want)
		}
	}
}

// With posts, the log has no edges and predictions. Every author has posts, some of them
// replies, and about as many replies are in force as the network has edges.
func TestPostsSayTheSameNetwork(t *testing.T) {
	c := smallSimulation(29)
	c.Posts, c.InitialShare, c.Activity = true, 1, 500
	authors, ends := map[event.ID]int{}, map[[2]event.ID]event.Time{}
	s := simulate(t, c, func(s *Network, b *event.Batch) {
		if len(b.Edges)+len(b.Predictions) > 0 {
			t.Fatalf("%d edges and %d predictions", len(b.Edges), len(b.Predictions))
		}
		for _, p := range b.Posts {
			authors[p.Author]++
			if p.ReplyTo.Given {
				ends[[2]event.ID{p.Author, p.ReplyTo.ID}] = p.Time + event.Time(p.TTL)
			}
		}
	})
	live := 0
	for _, end := range ends {
		if end > s.Now() {
			live++
		}
	}
	if got := float64(live) / float64(s.network.edges.size); got < 0.8 || got > 1.2 {
		t.Errorf("%d answers are in force, the network has %d edges", live, s.network.edges.size)
	}
	if len(authors) != c.Vertices {
		t.Errorf("%d of %d vertices have posts", len(authors), c.Vertices)
	}
}

// The cost of a tick must depend on its events, not on the size of the network: no slice
// that grows with the network may be walked. The test counts and does not time: a network
// of 100 times the vertices emits the same number of events in a calm tick.
func TestEventsOfATickDoNotGrowWithTheNetwork(t *testing.T) {
	events := func(vertices int) (n int) {
		c := smallSimulation(23)
		c.Vertices, c.InitialShare, c.Duration = vertices, 1, 10*time.Second
		c.Drift, c.JumpEvery, c.Churn = 0, 0, 0
		simulate(t, c, func(s *Network, b *event.Batch) {
			if s.elapsed() > 5*time.Second { // the initial predictions and labels are out
				n += b.Events()
			}
		})
		return n
	}
	small, large := events(1000), events(100_000)
	if float64(large) > 1.3*float64(small) {
		t.Errorf("%d events with 1,000 vertices, %d with 100,000", small, large)
	}
}

// The edge set must equal a map, through growth and removal.
func TestEdgeSetEqualsAMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var set edgeSet
		want := map[uint64]bool{}
		for i := range 5000 {
			if len(want) > 0 && rng.IntN(5) < 2 {
				edge := set.takeAny(rng)
				if !want[edge] {
					t.Fatalf("seed %d step %d: took %x, which is absent", seed, i, edge)
				}
				delete(want, edge)
			} else {
				edge := edgeOf(rng.Uint32N(100), 100+rng.Uint32N(100))
				if set.add(edge) == want[edge] {
					t.Fatalf("seed %d step %d: adding %x, present %v", seed, i, edge, want[edge])
				}
				want[edge] = true
			}
			if set.size != len(want) {
				t.Fatalf("seed %d step %d: size %d, want %d", seed, i, set.size, len(want))
			}
		}
	}
}

// A configuration with several mistakes must be told all of them.
func TestSimulationConfigReportsEveryMistake(t *testing.T) {
	_, err := New(Config{Classes: 1, LabelShare: 2, Accuracy: []float64{0.1}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{
		"vertices", "communities", "classes", "label share", "accuracy",
		"step every",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
}

// BenchmarkSimulation reports events generated a second, in the initial network
// and while it evolves.
func BenchmarkSimulation(b *testing.B) {
	for _, vertices := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("vertices=%d", vertices), func(b *testing.B) {
			c := DefaultConfig()
			c.Vertices, c.InitialShare, c.Duration, c.Activity = vertices, 1, 0, 100_000
			s, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			var batch event.Batch
			events := 0
			next := func() {
				if err := s.Next(context.Background(), &batch); err != nil {
					b.Fatal(err)
				}
				events += batch.Events()
			}
			begin := time.Now()
			for s.tick == 0 {
				next()
			}
			initial := float64(events) / time.Since(begin).Seconds()
			events = 0
			b.ResetTimer()
			for b.Loop() {
				next()
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(initial, "initial-events/s")
		})
	}
}
