package graphstore

import "testing"

// Check must see an entry that is wrong, one-sided, doubled or of another weight on its
// two sides, and an index that does not find its entry.
func TestCheckSeesDamage(t *testing.T) {
	for name, damage := range map[string]func(g *adjacency){
		"another neighbour": func(g *adjacency) { g.arena.from(g.runs.data[5].at)[0] = 6 },
		"doubled":           func(g *adjacency) { b := g.arena.from(g.runs.data[0].at); b[1] = b[0] },
		"another weight":    func(g *adjacency) { g.weights.from(g.runs.data[7].at)[0] = 9 },
		"index":             func(g *adjacency) { g.hubs[0][5]++ },
		"no index":          func(g *adjacency) { delete(g.hubs, 0) },
		"free block":        func(g *adjacency) { g.arena.idle++ },
		"degree":            func(g *adjacency) { g.runs.data[3].degree++ },
	} {
		g := newAdjacency(8)
		g.runs.resize(40)
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
