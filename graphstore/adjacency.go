package graphstore

import "slices"

// run is one vertex of the graph: its neighbours, and the sum of their edge weights.
type run struct {
	neighbors []Vertex
	degree    float64
	hub       bool // whether it has an index
	// whether neighbours or their order changed since the last compaction
	changed bool
}

// adjacency holds the neighbours of every vertex.
//
// Invariant: u occurs once in the run of v exactly if v occurs once in the run of u, with the same
// weight. A run longer than hubDegree has an index; after a compaction no other run has one.
// weights, if there are any, has a list parallel to each run.
type adjacency struct {
	runs      []run
	compacted []lists     // by chunkRowsMax vertices; runs that have not changed are slices of it
	weights   [][]float64 // by vertex, once a weight differs from 1, else nil
	heavy     int         // directed entries with another weight than 1
	weightSum float64     // sum of all degrees
	edges     int
	// by vertex with many neighbours: the index of each neighbour in its run
	hubs      map[Vertex]map[Vertex]uint32
	hubDegree int
}

// newAdjacency returns a graph without vertices.
func newAdjacency(hubDegree int) adjacency {
	return adjacency{hubs: map[Vertex]map[Vertex]uint32{}, hubDegree: hubDegree}
}

// grow adds an empty run for one new vertex.
func (g *adjacency) grow() {
	g.runs = append(g.runs, run{})
	if g.weights != nil {
		g.weights = append(g.weights, nil)
	}
}

// snapshot returns the columns of the tables of a compacted graph, for reading while g changes: the
// compacted lists, which both share, and a copy of the degrees.
func (g *adjacency) snapshot() adjacency {
	return adjacency{
		runs: slices.Clone(g.runs), compacted: slices.Clone(g.compacted),
		edges: g.edges, heavy: g.heavy,
	}
}

// own copies the run of v out of the compacted lists before it is changed in place. An append needs
// no such call, because a slice of those lists has no spare capacity.
func (g *adjacency) own(v Vertex) {
	r := &g.runs[v]
	if r.changed {
		return
	}
	r.changed = true
	r.neighbors = slices.Clone(r.neighbors)
	if g.weights != nil {
		g.weights[v] = slices.Clone(g.weights[v])
	}
}

// Neighbors returns the neighbours of v in the store's order, without v. The
// order is a function of the history since the last Compact.
func (g *adjacency) Neighbors(v Vertex) []Vertex { return slices.Clip(g.runs[v].neighbors) }

// Weights returns the edge weights parallel to Neighbors, or nil when every edge
// of the graph weighs one.
func (g *adjacency) Weights(v Vertex) []float64 {
	if g.heavy == 0 {
		return nil
	}
	return slices.Clip(g.weights[v])
}

// position returns the index of u in the run of v.
func (g *adjacency) position(v, u Vertex) (int, bool) {
	r := &g.runs[v]
	if r.hub {
		i, ok := g.hubs[v][u]
		return int(i), ok
	}
	i := slices.Index(r.neighbors, u)
	return i, i >= 0
}

// warm reads the memory that setting these edges will need. The returned sum has no meaning: it
// keeps the compiler from removing the reads.
//
// An insertion waits for memory twice, for the runs of both ends and then for their neighbours, and
// the next insertion cannot start meanwhile. The turns of a loop that only reads can overlap, so
// here the waits overlap.
func (g *adjacency) warm(edges []entry) (sum uint64) {
	for _, e := range edges {
		u, v := unpair(e.key)
		sum += uint64(len(g.runs[u].neighbors) + len(g.runs[v].neighbors))
	}
	for _, e := range edges {
		u, v := unpair(e.key)
		sum += g.warmRun(u) + g.warmRun(v)
	}
	return sum
}

// warmRun reads the end of a run, where an insert writes, and its beginning, where a search starts.
func (g *adjacency) warmRun(v uint32) uint64 {
	list := g.runs[v].neighbors
	if len(list) == 0 {
		return 0
	}
	return uint64(list[len(list)-1] + list[0])
}

// weight returns the weight of the edge {u, v}, 0 when there is none. It reads
// the shorter run.
func (g *adjacency) weight(u, v Vertex) float64 {
	if len(g.runs[u].neighbors) > len(g.runs[v].neighbors) {
		u, v = v, u
	}
	i, ok := g.position(u, v)
	if !ok {
		return 0
	}
	return g.weightAt(u, i)
}

// weightAt returns the weight of the i-th entry of the run of v.
func (g *adjacency) weightAt(v Vertex, i int) float64 {
	if g.weights == nil {
		return 1
	}
	return g.weights[v][i]
}

// keepWeights allocates a weight for every entry, before the first weight other than 1.
func (g *adjacency) keepWeights() {
	if g.weights != nil {
		return
	}
	g.weights = make([][]float64, len(g.runs))
	for v := range g.runs {
		g.weights[v] = slices.Repeat([]float64{1}, len(g.runs[v].neighbors))
	}
}

// set changes the weight of the edge {u, v} from before to after.
func (g *adjacency) set(u, v Vertex, before, after float64) {
	switch {
	case before == 0:
		g.insert(u, v, after)
		g.insert(v, u, after)
		g.edges++
	case after == 0:
		g.remove(u, v)
		g.remove(v, u)
		g.edges--
	default:
		g.reweigh(u, v, after)
		g.reweigh(v, u, after)
	}
	g.runs[u].degree += after - before
	g.runs[v].degree += after - before
	g.weightSum += 2 * (after - before)
}

// insert appends u to the run of v, which must not contain it yet.
func (g *adjacency) insert(v, u Vertex, weight float64) {
	if weight != 1 {
		g.keepWeights()
		g.heavy++
	}
	r := &g.runs[v]
	r.neighbors = append(r.neighbors, u)
	if g.weights != nil {
		g.weights[v] = append(g.weights[v], weight)
	}
	r.changed = true
	if r.hub {
		g.hubs[v][u] = uint32(len(r.neighbors) - 1)
	} else if len(r.neighbors) > g.hubDegree {
		g.index(v)
	}
}

// index builds the index of the run of v.
func (g *adjacency) index(v Vertex) {
	r := &g.runs[v]
	index := make(map[Vertex]uint32, len(r.neighbors))
	for i, u := range r.neighbors {
		index[u] = uint32(i)
	}
	g.hubs[v], r.hub = index, true
}

// remove takes u, which must be there, out of the run of v: the last entry takes its place. The
// freed memory, and the index of a run that is no longer a hub, stay until a compaction.
func (g *adjacency) remove(v, u Vertex) {
	i, ok := g.position(v, u)
	if !ok {
		return
	}
	g.own(v)
	r := &g.runs[v]
	last := len(r.neighbors) - 1
	moved := r.neighbors[last]
	r.neighbors[i] = moved
	r.neighbors = r.neighbors[:last]
	if g.weights != nil {
		weights := g.weights[v]
		if weights[i] != 1 {
			g.heavy--
		}
		weights[i] = weights[last]
		g.weights[v] = weights[:last]
	}
	if r.hub {
		g.hubs[v][moved] = uint32(i)
		delete(g.hubs[v], u)
	}
}

// reweigh changes the weight of the entry of u in the run of v.
func (g *adjacency) reweigh(v, u Vertex, after float64) {
	i, ok := g.position(v, u)
	if !ok {
		return
	}
	g.keepWeights()
	g.own(v)
	if g.weights[v][i] != 1 {
		g.heavy--
	}
	if after != 1 {
		g.heavy++
	}
	g.weights[v][i] = after
}

// compact sorts the neighbours of changed vertices and trims their memory. Afterwards two graphs
// with the same edges give the same answers and react the same to the same batches.
func (g *adjacency) compact() {
	if g.heavy == 0 {
		g.weights = nil
	}
	for i := range g.listCount() {
		if !g.isCompact(i) {
			g.compactLists(i)
		}
	}
}

// compactLists replaces the i-th lists by the sorted content of the runs of their vertices.
func (g *adjacency) compactLists(i int) {
	l := g.copyLists(i)
	if i == len(g.compacted) {
		g.compacted = append(g.compacted, lists{})
	}
	g.compacted[i] = l
	runs, first := g.runsOf(i)
	for j := range runs {
		r, v := &runs[j], Vertex(first+j)
		from, to := l.offsets.data[j], l.offsets.data[j+1]
		r.neighbors = nil
		if to > from {
			r.neighbors = l.neighbors.data[from:to:to]
		}
		if l.weighted {
			g.weights[v] = l.weights.data[from:to:to]
		}
		if r.changed {
			r.changed = false
			g.sort(v)
		}
	}
}

// sort sorts the run of v and its index.
func (g *adjacency) sort(v Vertex) {
	r := &g.runs[v]
	if r.hub {
		delete(g.hubs, v)
		r.hub = false
	}
	if g.weights == nil {
		slices.Sort(r.neighbors)
	} else {
		sortWeighted(r.neighbors, g.weights[v])
	}
	if len(r.neighbors) > g.hubDegree {
		g.index(v)
	}
}

// sortWeighted sorts neighbours with the weights of the edges to them.
func sortWeighted(neighbors []Vertex, weights []float64) {
	if slices.IsSorted(neighbors) {
		return
	}
	of := make(map[Vertex]float64, len(neighbors))
	for i, u := range neighbors {
		of[u] = weights[i]
	}
	slices.Sort(neighbors)
	for i, u := range neighbors {
		weights[i] = of[u]
	}
}
