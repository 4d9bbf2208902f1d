package posterior

import (
	"fmt"
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
)

// Check compares what the state has followed with a count from nothing, and every
// posterior that nothing has touched with one computed anew under the same epoch: bit for
// bit, but for what hubs have not told. It names the first difference.
func (s *State) Check(view graphstore.View, sums *neighborhood.Sums) error {
	twin := New(s.classes, s.options)
	twin.recount(view)
	switch {
	case !slices.Equal(s.counts, twin.counts):
		return fmt.Errorf("posterior: labelled neighbours %v, a recount gives %v", s.counts, twin.counts)
	case !slices.Equal(s.labels, twin.labels):
		return fmt.Errorf("posterior: labels %v, a recount gives %v", s.labels, twin.labels)
	case len(s.labels) > 0 && s.model() != twin.model():
		return fmt.Errorf("posterior: labels of model version %d, a recount gives %d", s.model(), twin.model())
	}
	if s.inside.open != twin.inside.open {
		return fmt.Errorf("posterior: %d open vertices, a recount gives %d", s.inside.open, twin.inside.open)
	}
	for id := range s.inside.edges {
		edges, distinct := s.Inside(graphstore.Community(id))
		if view.Retired(graphstore.Community(id)) {
			continue
		}
		if wantEdges, want := twin.Inside(graphstore.Community(id)); edges != wantEdges || distinct != want {
			return fmt.Errorf("posterior: community %s has %d edges between %d open members, a recount gives %d between %d",
				view.CommunityName(graphstore.Community(id)), edges, distinct, wantEdges, want)
		}
	}
	if s.epoch == nil {
		return nil
	}
	twin.epoch = s.epoch
	twin.compute(view, sums)
	in := newInputs(view, sums, s.counts, s.epoch.Prior, s.options.Echo)
	for v := range Vertex(view.Vertices()) {
		got, want := s.Posterior(v), twin.Posterior(v)
		if s.dirty[v] || slices.Equal(got, want) {
			continue
		}
		slack := 0.0
		if got != nil && want != nil {
			slack = s.slack(view, in, v)
		}
		for i, x := range want {
			if slack == 0 || math.Abs(got[i]-x) > math.Expm1(slack)*x+1e-12 {
				return fmt.Errorf("posterior: vertex %d has %v, computed anew %v, slack %v", v, got, want, slack)
			}
		}
	}
	return nil
}
