package diffusion

import (
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
				!slices.Equal(f.Touched(), g.Touched()) || f.Certificate() != g.Certificate() || f.work != g.work {
				t.Fatalf("seed %d step %d: the restored field differs", seed, step)
			}
		}
	}
}

func restore(t *testing.T, f *Field, w *world) *Field {
	t.Helper()
	g, err := RestoreField(f.config, w.store.View(), f.State())
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
	with := func(rest []byte) State { return State{Z: state.Z, R: state.R, Rest: rest} }
	for n := range state.Rest {
		if _, err := RestoreField(f.config, view, with(state.Rest[:n])); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(state.Rest))
		}
	}
	for i := range state.Rest {
		damaged := slices.Clone(state.Rest)
		damaged[i] ^= 0xff
		_, _ = RestoreField(f.config, view, with(damaged))
	}
	if _, err := RestoreField(f.config, view, State{Z: state.Z, R: state.R[1:], Rest: state.Rest}); err == nil {
		t.Fatal("a residual too few was accepted")
	}
	if _, err := RestoreField(Config{Alpha: 0.2}, view, state); err == nil {
		t.Fatal("another alpha was accepted")
	}
	w.edge(90, 91, 1)
	if view, _ = w.apply(); true {
		if _, err := RestoreField(f.config, view, state); err == nil {
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
			data, err := g.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			h, err := RestoreDual(g.config, view, data)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 3, 50, len(data) / 2, len(data) - 1} {
				if _, err := RestoreDual(g.config, view, data[:min(n, len(data)-1)]); err == nil {
					t.Fatalf("seed %d step %d: %d of %d bytes were accepted", seed, step, n, len(data))
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
