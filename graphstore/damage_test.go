package graphstore

import "testing"

// Check must see an entry that is wrong, one-sided, doubled or of another weight on its
// two sides, and an index that does not find its entry.
func TestCheckSeesDamage(t *testing.T) {
	for name, damage := range map[string]func(g *adjacency){
		"another neighbour": func(g *adjacency) { g.runs[5].neighbors[0] = 6 },
		"doubled":           func(g *adjacency) { b := g.runs[0].neighbors; b[1] = b[0] },
		"another weight":    func(g *adjacency) { g.weights[7][0] = 9 },
		"index":             func(g *adjacency) { g.hubs[0][5]++ },
		"no index":          func(g *adjacency) { delete(g.hubs, 0) },
		"degree":            func(g *adjacency) { g.runs[3].degree++ },
	} {
		g := newAdjacency(8)
		g.runs = make([]run, 40)
		for v := Vertex(1); v < 40; v++ {
			g.set(0, v, 0, 1)
		}
		g.set(7, 8, 0, 2.5)
		if err := g.check(); err != nil {
			t.Fatal(err)
		}
		damage(&g)
		if g.check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
