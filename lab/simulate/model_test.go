package simulate

import (
	"math"
	"slices"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// Edges must join the same group and the same opinion as often as configured:
// h of them because they were sought there, the others by chance.
func TestHomophilyIsAsConfigured(t *testing.T) {
	for _, h := range []struct{ group, opinion float64 }{{0, 0}, {0.8, 0}, {0, 0.6}, {0.7, 0.5}} {
		c := smallSimulation(5)
		c.GroupHomophily, c.OpinionHomophily = h.group, h.opinion
		c.Vertices, c.InitialShare, c.Duration = 20_000, 1, c.StepEvery
		sameGroup, sameClass := 0.0, 0.0
		s := simulate(t, c, func(*Network, *event.Batch) {})
		n := &s.network
		for _, edge := range n.edges.slots {
			if edge == 0 {
				continue
			}
			u, v := n.vertices[edge>>32], n.vertices[edge&math.MaxUint32]
			if u.group == v.group {
				sameGroup += 1 / float64(n.edges.size)
			}
			if u.class == v.class {
				sameClass += 1 / float64(n.edges.size)
			}
		}
		group, class := chance(n)
		wantGroup := h.group + (1-h.group)*group
		wantClass := h.opinion + (1-h.opinion)*(h.group*class.within+(1-h.group)*class.overall)
		if math.Abs(sameGroup-wantGroup) > 0.03 || math.Abs(sameClass-wantClass) > 0.03 {
			t.Errorf(
				"homophily %v: %.3f of the edges in a group, want %.3f; %.3f in an opinion, "+
					"want %.3f",
				h,
				sameGroup,
				wantGroup,
				sameClass,
				wantClass,
			)
		}
	}
}

// chance returns how often two vertices that are drawn by activity share a group,
// and an opinion: from the whole network, and from one group.
func chance(n *network) (group float64, class struct{ within, overall float64 }) {
	total := 0.0
	for _, w := range n.weight {
		total += float64(w)
	}
	byClass := make([]float64, n.classes)
	for g := range n.names {
		own := n.weight[g*n.classes : (g+1)*n.classes]
		sum, square := 0.0, 0.0
		for k, w := range own {
			byClass[k] += float64(w) / total
			sum += float64(w)
			square += float64(w) * float64(w)
		}
		group += sum / total * sum / total
		class.within += square / sum / total
	}
	for _, p := range byClass {
		class.overall += p * p
	}
	return group, class
}

// The part of right predictions of each class must be the accuracy configured for it,
// whatever the neighbours do to single vertices, and the mean probability of the predicted
// class must be its accuracy (calibration).
func TestClassifierIsAsAccurateAsConfigured(t *testing.T) {
	for _, accuracy := range [][]float64{{0.75}, {0.9, 0.65}, {0.8, 0.7, 0.6, 0.9}} {
		c := smallSimulation(11)
		c.Vertices, c.Classes, c.Accuracy = 20_000, max(2, len(accuracy)), accuracy
		c.Drift, c.JumpEvery, c.Churn, c.Neighborly = 0, 0, 0, 0.3
		counted := newCensus()
		said := 0.0
		predictions := 0
		s := simulate(t, c, func(_ *Network, b *event.Batch) {
			counted.apply(t, b)
			for _, p := range b.Predictions {
				said += float64(slices.Max(p.Units)) / event.One
				predictions++
			}
		})
		right, all := make([]float64, c.Classes), make([]float64, c.Classes)
		hits := 0.0
		for v, class := range counted.predictions {
			truth := s.network.vertices[v.Number].class
			all[truth]++
			if class == event.Class(truth) {
				right[truth]++
				hits++
			}
		}
		for k := range right {
			if want := accuracy[k%len(accuracy)]; math.Abs(right[k]/all[k]-want) > 0.025 {
				t.Errorf(
					"accuracy %v: class %d is right in %.3f of %v", accuracy, k, right[k]/all[k],
					all[k],
				)
			}
		}
		if got, want := said/float64(predictions), hits/float64(len(counted.predictions)); math.Abs(
			got-want,
		) > 0.03 {
			t.Errorf(
				"accuracy %v: mean confidence %.3f, share of right predictions %.3f", accuracy, got,
				want,
			)
		}
	}
}

// A jump must move the communities that the truth says it moves, in its tick, and no
// others; without drift the prevalence of those must stay.
func TestJumpsMoveTheirCommunitiesAtTheirTime(t *testing.T) {
	c := smallSimulation(13)
	c.Drift, c.JumpEvery, c.MoveShare, c.InitialShare = 0, 7*time.Second, 0, 1
	start := event.Time(c.Start.UnixNano())
	var before, after []TruthRecord
	simulate(t, c, func(s *Network, b *event.Batch) {
		switch at := time.Duration(b.Time - start); {
		case b.Emit && at == c.JumpEvery-c.StepEvery:
			before = s.AppendTruth(nil)
		case b.Emit && at == c.JumpEvery:
			after = s.AppendTruth(nil)
		}
	})
	moves := 0
	for g := range c.Communities {
		moved := before[g].Prevalence[0] != after[g].Prevalence[0]
		if moved != (after[g].Jumped == after[g].Time) {
			t.Errorf("community %d: %v before, %v after the jump", g, before[g], after[g])
		}
		if moved {
			moves++
		}
	}
	if moves == 0 || moves == c.Communities {
		t.Errorf("%d of %d communities moved", moves, c.Communities)
	}
}

// The degrees must have a heavy tail: the most active hundredth of the vertices
// takes part in several times its share of the edges.
func TestActivityHasAHeavyTail(t *testing.T) {
	c := smallSimulation(19)
	c.Vertices, c.InitialShare, c.Duration = 20_000, 1, c.StepEvery
	degrees := make([]int, c.Vertices)
	simulate(t, c, func(_ *Network, b *event.Batch) {
		for _, e := range b.Edges {
			degrees[e.Src.Number]++
			degrees[e.Dst.Number]++
		}
	})
	slices.Sort(degrees)
	top, all := 0, 0
	for i, d := range degrees {
		all += d
		if i >= len(degrees)*99/100 {
			top += d
		}
	}
	if share := float64(top) / float64(all); share < 0.1 || share > 0.6 {
		t.Errorf("the top hundredth has %.3f of the edge ends", share)
	}
}
