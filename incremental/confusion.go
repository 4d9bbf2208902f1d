package incremental

import "gqlstream/graphstore"

// ForPairs calls visit for each calibration label that is paired with a prediction, by vertex. The
// prediction is that of the time of the label: K units, read-only. version is the model version
// that made it. A cold core has no pairs. It reads every vertex once, in O(vertices) and no memory.
func (c *Core) ForPairs(visit func(v graphstore.Vertex, version uint32, units []uint32)) {
	view := c.View()
	for v := range graphstore.Vertex(view.Vertices()) {
		if c.pairs.Calibrates(v) >= 0 {
			visit(v, c.pairs.Version(view, v), c.pairs.Prediction(view, v))
		}
	}
}
