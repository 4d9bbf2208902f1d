package graphstore

import (
	"cmp"
	"slices"
)

// compact sorts the neighbours of the vertices that have changed, and gives each the block that
// fits. Afterwards two graphs of the same edges are read alike and go on alike, wherever in
// their arenas the runs stand. So all runs are written anew only where much of the arena is free.
func (g *adjacency) compact() {
	if 8*g.arena.idle > g.arena.used {
		g.rewrite()
	}
	if g.heavy == 0 {
		g.weights = pages[float64]{}
	}
	for v := range g.runs.data {
		if g.runs.data[v].changed {
			g.sort(Vertex(v))
		}
	}
	g.arena.given = 0
}

// sort brings the run of v into its canonical form.
func (g *adjacency) sort(v Vertex) {
	g.dropIndex(v)
	r := &g.runs.data[v]
	r.changed = false
	if class := classOf(int(r.len)); class != r.class {
		g.move(r, class)
	}
	switch entries := g.entries(r); {
	case slices.IsSorted(entries):
	case g.weighted():
		sortWeighted(entries, g.weights.from(r.at))
	default:
		slices.Sort(entries)
	}
	if int(r.len) > g.hubDegree {
		g.index(v)
	}
}

// sortWeighted sorts neighbours with the weights of the edges to them.
func sortWeighted(entries []uint32, weights []float64) {
	type pair struct {
		entry  uint32
		weight float64
	}
	pairs := make([]pair, len(entries))
	for i, u := range entries {
		pairs[i] = pair{u, weights[i]}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.entry, b.entry) })
	for i, p := range pairs {
		entries[i], weights[i] = p.entry, p.weight
	}
}

// rewrite gives the runs, in order of vertices, new blocks that fit, and leaves them to be sorted
// and the hubs to be indexed. It takes memory for a copy of the runs.
func (g *adjacency) rewrite() {
	old := *g
	g.arena, g.weights = arena{}, pages[float64]{}
	clear(g.hubs)
	for v := range g.runs.data {
		r := &g.runs.data[v]
		if r.len == 0 {
			continue
		}
		from, class := *r, classOf(int(r.len))
		r.at, r.class, r.hub, r.changed = g.arena.take(class), class, false, true
		copy(g.entries(r), old.entries(&from))
		if g.heavy > 0 {
			g.weights.fit(&g.arena.pages)
			copy(g.weights.from(r.at), old.weights.from(from.at)[:r.len])
		}
	}
}
