package graphstore

import (
	"cmp"
	"slices"
)

// compact sorts the neighbours of the vertices that have changed, and gives each the block that
// fits. Afterwards two graphs of the same edges are read alike and go on alike, wherever in
// their arenas the runs stand. So all runs are written anew only where much of the arena is free.
func (g *adjacency) compact() {
	if 8*g.arena.idle > g.arena.used || 8*g.hubs.arena.idle > g.hubs.arena.used {
		g.rewrite()
	}
	if g.heavy == 0 {
		g.weights = pages[float64]{}
	}
	for v := range g.runs.data {
		if r := &g.runs.data[v]; r.changed {
			g.sort(r)
		}
	}
	g.arena.given, g.hubs.arena.given = 0, 0
}

// sort brings a run into its canonical form.
func (g *adjacency) sort(r *run) {
	if r.changed = false; r.hub != 0 {
		g.hubs.drop(r.hub)
		r.hub = 0
	}
	if class := classOf(int(r.len)); class != r.class {
		g.move(r, class)
	}
	if entries := g.entries(r); !g.weighted() {
		slices.Sort(entries)
	} else {
		sortWeighted(entries, g.weights.from(r.at))
	}
	if int(r.len) > g.hubDegree {
		r.hub = g.hubs.add(g.entries(r))
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

// rewrite gives the runs, in order of vertices, new blocks that fit. It takes memory for a copy of them.
func (g *adjacency) rewrite() {
	var arena arena
	var weights pages[float64]
	for v := range g.runs.data {
		r := &g.runs.data[v]
		if r.len == 0 {
			continue
		}
		at := arena.take(classOf(int(r.len)))
		copy(arena.from(at), g.entries(r))
		if g.heavy > 0 {
			weights.fit(&arena.pages)
			copy(weights.from(at), g.weights.from(r.at)[:r.len])
		}
		r.at = at
	}
	g.arena, g.weights = arena, weights
	g.index()
}

// index gives every run whose block fits the class of that, and indexes the hubs anew.
func (g *adjacency) index() {
	g.hubs.arena = arena{}
	g.hubs.list, g.hubs.free = g.hubs.list[:0], nil
	for v := range g.runs.data {
		r := &g.runs.data[v]
		if r.hub = 0; r.len == 0 {
			continue
		}
		r.class = classOf(int(r.len))
		if int(r.len) > g.hubDegree {
			r.hub = g.hubs.add(g.entries(r))
		}
	}
}
