package incremental

import (
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
)

// ball returns so many open vertices nearest to a root.
func ball(view graphstore.View, root graphstore.Vertex, size int) (members []graphstore.Vertex) {
	seen := map[graphstore.Vertex]bool{root: true}
	for queue := []graphstore.Vertex{root}; len(queue) > 0 &&
		len(members) < size; queue = queue[1:] {
		if view.Label(queue[0]).Class == event.NoClass {
			members = append(members, queue[0])
		}
		for _, u := range view.Neighbors(queue[0]) {
			if !seen[u] {
				seen[u] = true
				queue = append(queue, u)
			}
		}
	}
	return members
}

// simulated returns a core that has read a simulated network, and the true class of each vertex.
// right is the accuracy of the network's classifier.
func simulated(
	t *testing.T, classes int, right float64, seed uint64,
) (*Core, map[event.ID]event.Class) {
	s := simulate.DefaultConfig()
	s.Seed, s.Classes, s.Vertices, s.Duration, s.Activity = seed, classes, 4000, 10*time.Second, 100
	s.LabelShare, s.LabelDelay, s.JumpEvery, s.Accuracy = .1, 0, 0, []float64{right}
	s.LabelRate, s.LabelRenew, s.PostRate = 0, 1, s.Activity/4
	network, err := simulate.New(s)
	if err != nil {
		t.Fatal(err)
	}
	core := newCore(t, Config{Classes: classes})
	var b event.Batch
	for {
		if err := network.Next(t.Context(), &b); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		b.Emit = false
		core.Step(&b)
	}
	core.Step(&event.Batch{First: b.Last + 1, Last: b.Last + 1, Time: b.Time, Emit: true})
	classOf := map[event.ID]event.Class{}
	network.VisitClasses(func(v event.ID, class event.Class) { classOf[v] = class })
	return core, classOf
}

// A residual is the true class less the posterior. The residuals of members of one place must have
// at least the common variance that the agreement of neighbours in the coefficients implies. The
// squared error of their mean is two to four times that of independent members.
func TestMembersOfAPlaceVaryTogetherAsStated(t *testing.T) {
	const size = 100
	all := [2]float64{}
	for seed := range uint64(6) {
		classes := 2 + 2*int(seed%2)
		core, classOf := simulated(t, classes, .65-.1*float64(seed%2), seed)
		view, agreement := core.View(), core.Coefficients().Agreement
		squares, independent, common := 0.0, 0.0, 0.0
		for root := graphstore.Vertex(0); int(root) < view.Vertices(); root += 20 {
			members, inside := ball(view, root, size), map[graphstore.Vertex]bool{}
			for _, v := range members {
				inside[v] = true
			}
			sum, variance, ends, degrees := make([]float64, classes), 0.0, 0.0, 0.0
			for _, v := range members {
				sum[classOf[view.ID(v)]]++
				pi := make([]float64, classes)
				core.posteriors.state.Reader(view, core.sums).Posterior(pi, v)
				for i, p := range pi {
					sum[i] -= p
					variance += p * (1 - p)
				}
				degrees += float64(len(view.Neighbors(v)))
				for _, u := range view.Neighbors(v) {
					if inside[u] {
						ends++
					}
				}
			}
			for _, x := range sum {
				squares += x * x
			}
			independent += variance
			if degrees > 0 {
				common += variance * (agreement[0]*ends + agreement[1]*ends*ends/degrees) / size
			}
		}
		t.Logf(
			"seed %d, %d classes: agreement %.3f; squared error %.2f of independent members', "+
				"stated %.2f",
			seed,
			classes,
			agreement,
			squares/independent,
			1+common/independent,
		)
		all[0] += squares / independent
		all[1] += 1 + common/independent
	}
	if ratio := math.Sqrt(all[0] / all[1]); ratio < .9 || ratio > 1.3 || all[1] < 6*1.5 {
		t.Errorf("errors are %.2f of what is stated", ratio)
	}
}
