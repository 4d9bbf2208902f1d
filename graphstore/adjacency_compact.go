package graphstore

// compact writes the runs anew, from a copy of every edge at its lower end: half the
// graph is enough, because it is symmetric. Every run comes out sorted, since it is
// given its lower neighbours as the walk passes them, then its upper ones.
func (g *adjacency) compact() {
	ends, upper, weights := g.uppers()
	fill := g.layOut()
	pages, from := g.arena.list, uint32(0)
	for v, end := range ends {
		if from == end {
			continue
		}
		here := fill[v]
		copy(g.arena.from(here), upper[from:end])
		for i, u := range upper[from:end] {
			there := fill[u]
			fill[u]++
			pages[there>>pageBits][there&pageMask] = uint32(v)
			if g.heavy > 0 {
				weight := weights[from+uint32(i)]
				g.weights.from(here + uint32(i))[0], g.weights.from(there)[0] = weight, weight
			}
		}
		from = end
	}
	g.arena.trim()
	g.weights.trim()
	g.index()
}

// layOut gives every run its block in canonical form, without writing it, and returns
// where each begins. Writing counts these up: they are a sixth of the size of the runs,
// and so stay in the processor's caches.
func (g *adjacency) layOut() (fill []uint32) {
	g.arena.reset()
	g.weights.reset()
	fill = make([]uint32, len(g.runs.data))
	for v := range g.runs.data {
		if r := &g.runs.data[v]; r.len > 0 {
			r.at = g.arena.take(classOf(int(r.len)))
			fill[v] = r.at
		}
	}
	if g.heavy > 0 {
		g.addWeights()
	}
	return fill
}

// uppers returns the neighbours of each vertex that come after it, sorted, those of v
// before ends[v], with the weights of these edges where one is not 1.
func (g *adjacency) uppers() (ends []uint32, upper []uint32, weights []float64) {
	ends = make([]uint32, len(g.runs.data))
	total := uint32(0)
	for v := range g.runs.data {
		ends[v] = total // where those of v begin: filling them moves it to their end
		for _, u := range g.entries(&g.runs.data[v]) {
			if u > uint32(v) {
				total++
			}
		}
	}
	upper = make([]uint32, total)
	if g.heavy > 0 {
		weights = make([]float64, total)
	}
	for v := range g.runs.data {
		r := &g.runs.data[v]
		for i, u := range g.entries(r) {
			if u > uint32(v) {
				continue
			}
			at := ends[u]
			ends[u]++
			upper[at] = uint32(v)
			if g.heavy > 0 {
				weights[at] = g.weights.from(r.at)[i]
			}
		}
	}
	return ends, upper, weights
}

// index gives every run in canonical form the class of its block, and indexes the
// hubs anew.
func (g *adjacency) index() {
	g.hubs.arena.reset()
	g.hubs.list, g.hubs.free = g.hubs.list[:0], nil
	for v := range g.runs.data {
		r := &g.runs.data[v]
		if r.meta = 0; r.len == 0 {
			r.at = 0
			continue
		}
		r.setClass(classOf(int(r.len)))
		if int(r.len) > g.hubDegree {
			r.setHub(g.hubs.add(g.entries(r)))
		}
	}
	g.hubs.arena.trim()
}
