package diffusion

import (
	"math"
	"slices"
	"testing"
)

// A restored field must go on with the same bits as one that never stopped.
func TestRestoredFieldGoesOnBitForBit(t *testing.T) {
	for seed := range uint64(48) {
		alpha, tolerance, weighted := settings(seed)
		w := newWorld(t, seed, 120, weighted)
		f := newField(t, alpha, tolerance)
		for step := range 24 {
			view, delta := w.next()
			changes := w.moves(view)
			if w.r.IntN(8) == 0 {
				f.Solve(view, changes, 1e-8)
			} else {
				f.Update(view, delta, changes)
			}
			g := restore(t, f, w)
			view, delta = w.next()
			changes = w.moves(view)
			f.Update(view, delta, changes)
			g.Update(view, delta, changes)
			if !slices.Equal(f.z, g.z) || !slices.Equal(f.r, g.r) ||
				!slices.Equal(
					f.Touched(),
					g.Touched(),
				) || f.Certificate() != g.Certificate() || f.work != g.work {
				t.Fatalf("seed %d step %d: the restored field differs", seed, step)
			}
		}
	}
}

func restore(t *testing.T, f *Field, w *world) *Field {
	t.Helper()
	g, err := RestoreField(f.config.Alpha, w.store.View(), f.State())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Damaged state must be an error, never a panic.
func TestRestoreRefusesDamage(t *testing.T) {
	w := newWorld(t, 1, 50, false)
	f := newField(t, 0.1, 1e-2)
	view, delta := w.next()
	f.Update(view, delta, []SourceChange{{0, 1}, {1, 2}})
	state := f.State()
	for name, damage := range map[string]func(*State){
		"a residual too few":            func(s *State) { s.R = s.R[1:] },
		"a value too few":               func(s *State) { s.Z = s.Z[1:] },
		"a multiplicity too few":        func(s *State) { s.Multiplicities = s.Multiplicities[1:] },
		"a source outside of the graph": func(s *State) { s.Sources = []Vertex{0, 1 << 30} },
		"a source that is there twice":  func(s *State) { s.Sources = []Vertex{1, 1} },
		"another alpha":                 func(s *State) { s.Keep = 0.5 },
		"a bar below the least":         func(s *State) { s.Lift = math.NaN() },
		"no tolerance":                  func(s *State) { s.Tolerance = -1 },
	} {
		damaged := state
		damage(&damaged)
		if _, err := RestoreField(0.1, view, damaged); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	w.edge(90, 91, 1)
	if view, _ = w.apply(); true {
		if _, err := RestoreField(0.1, view, state); err == nil {
			t.Fatal("another graph was accepted")
		}
	}
}

// The same for a dual.
func TestRestoredDualGoesOnBitForBit(t *testing.T) {
	for seed := range uint64(24) {
		alpha, tolerance, weighted := settings(seed)
		w := newWorld(t, seed, 120, weighted)
		g := newDual(t, alpha, tolerance, 3)
		for step := range 20 {
			view, delta := w.next()
			if w.r.IntN(8) == 0 {
				g.Solve(view, w.values(g, view), 1e-8)
			} else {
				g.Update(view, delta, w.values(g, view))
			}
			h, err := RestoreDual(g.config, view, g.parts(1+w.r.IntN(150)))
			if err != nil {
				t.Fatal(err)
			}
			for name, damage := range map[string]func(*DualState){
				"another alpha":      func(s *DualState) { s.Keep = 0.5 },
				"a residual too few": func(s *DualState) { s.R = s.R[1:] },
				"a value too many":   func(s *DualState) { s.Y = append(slices.Clone(s.Y), 0) },
				"a vertex too few": func(s *DualState) {
					s.Most, s.Y, s.R = s.Most[1:], s.Y[3:],
						s.R[3:]
				},
				"a function too many": func(s *DualState) { s.Functions = append(s.Functions, 0) },
				"a function elsewhere": func(s *DualState) {
					s.Valued,
						s.Functions = []Vertex{1 << 30}, make([]float64, 3)
				},
			} {
				damaged := g.State()
				if view.Vertices() == 0 {
					break
				}
				damage(&damaged[0])
				if _, err := RestoreDual(g.config, view, damaged); err == nil {
					t.Fatalf("seed %d step %d: %s was accepted", seed, step, name)
				}
			}
			view, delta = w.next()
			values := w.values(g, view)
			g.Update(view, delta, values)
			h.Update(view, delta, values)
			if !slices.Equal(g.y, h.y) || !slices.Equal(g.cells, h.cells) || g.work != h.work ||
				!slices.Equal(g.Touched(), h.Touched()) || g.Certificate() != h.Certificate() {
				t.Fatalf("seed %d step %d: the restored dual differs", seed, step)
			}
		}
	}
}
