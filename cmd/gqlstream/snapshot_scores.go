package main

import (
	"cmp"
	"iter"
	"slices"

	"gqlstream/config"
	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
)

// scoreTolerance bounds the certificate of scores.
const scoreTolerance = 1e-3

// score is the probability that a walk from a community ends at a vertex.
type score struct {
	Community, Vertex string
	Score             float64
}

// scoresOf visits the kernel of every community that has members without a label: the
// share of its walks that end at a vertex, where that is positive. Kernels are computed
// here, because a checkpoint need not hold one for each community.
func (c *snapshotExportCmd) scoresOf(view graphstore.View, progress *meter) (iter.Seq[score], error) {
	conf := diffusion.Config{Alpha: c.Alpha, Tolerance: scoreTolerance}
	if _, err := diffusion.NewField(conf); err != nil {
		return nil, config.Usagef("snapshot export: --alpha: %w", err)
	}
	for _, name := range c.Community {
		if _, ok := view.FindCommunity(name); !ok {
			return nil, config.Usagef("snapshot export: there is no community %q in this checkpoint", name)
		}
	}
	return func(yield func(score) bool) {
		for id := range graphstore.Community(view.Communities()) {
			sources := diffusion.Sources(id, view)
			if view.Retired(id) || len(sources) == 0 || len(c.Community) > 0 && !slices.Contains(c.Community, view.CommunityName(id)) {
				continue
			}
			field, _ := diffusion.NewField(conf) // it was validated
			field.Solve(view, sources, scoreTolerance)
			sum := 0.0
			for v := range graphstore.Vertex(view.Vertices()) {
				sum += max(field.Mass(v), 0)
			}
			var list []graphstore.Vertex
			for v := range graphstore.Vertex(view.Vertices()) {
				if field.Mass(v) > 0 && !view.Erased(v) {
					list = append(list, v)
				}
			}
			if c.Top > 0 {
				slices.SortStableFunc(list, func(a, b graphstore.Vertex) int { return cmp.Compare(field.Mass(b), field.Mass(a)) })
				list = list[:min(len(list), c.Top)]
			}
			for _, v := range list {
				if !yield(score{view.CommunityName(id), view.ID(v).String(), field.Mass(v) / sum}) {
					return
				}
			}
			progress.add(len(list), float64(id+1)/float64(view.Communities()))
		}
	}, nil
}
