package diffusion

import (
	"slices"
	"testing"

	"gqlstream/graphstore"
)

func newLayered(t testing.TB, config LayeredConfig) *Layered {
	t.Helper()
	l, err := NewLayered(config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// layeredSettings returns both kernels, every step count to 12 and all of settings.
func layeredSettings(seed uint64) (config LayeredConfig, weighted bool) {
	alpha, tolerance, weighted := settings(seed)
	kernels := []string{Truncated, Lazy}
	return LayeredConfig{
		Kernel: kernels[seed/2%2], Alpha: alpha, Tolerance: tolerance, Steps: 1 + int(seed%12),
	}, weighted
}

func layeredMasses(l *Layered) []float64 {
	a := make([]float64, l.Vertices())
	for v := range a {
		a[v] = l.Mass(Vertex(v))
	}
	return a
}

func (w *world) sourceVector(n int) []float64 {
	m := make([]float64, n)
	for v, x := range w.sources {
		m[v] = x
	}
	return m
}

// After every batch of any history a layered kernel must stand as near to its
// definition, evaluated with dense matrices, as its certificate says, within its
// tolerance, with an exact residual; what changed must be listed.
func TestLayeredStaysWithinCertificate(t *testing.T) {
	worst := 0.0
	for seed := range uint64(192) {
		config, weighted := layeredSettings(seed)
		w := newWorld(t, seed, 4+int(seed%50), weighted)
		l := newLayered(t, config)
		for step := range 30 {
			view, delta := w.next()
			before := layeredMasses(l)
			moves := w.moves(view)
			if w.r.IntN(10) == 0 {
				l.Solve(view, moves, 0)
			} else {
				l.Update(view, delta, moves)
			}
			if err := l.Check(view); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
			source := w.sourceVector(view.Vertices())
			m, c := total(source), l.Certificate()
			if c > config.Tolerance*(1+2*roundingShare) {
				t.Fatalf("seed %d step %d: certificate %v, tolerance %v", seed, step, c, config.Tolerance)
			}
			want := source
			if m > 0 {
				want = oracleKernel(t, view, config.Kernel, source, KernelParams{Alpha: config.Alpha, Steps: config.Steps})
			}
			got := layeredMasses(l)
			if e := distance(got, want); e > (c+1e-13)*m {
				t.Fatalf("seed %d step %d: error %v, certificate %v, M %v", seed, step, e/m, c, m)
			} else if m > 0 && c > 1e-9 {
				worst = max(worst, e/m/c)
			}
			for v, x := range before {
				if x != got[v] && !slices.Contains(l.Touched(), Vertex(v)) {
					t.Fatalf("seed %d step %d: mass of %d changed untouched", seed, step, v)
				}
			}
		}
	}
	if !(worst > 0.02 && worst <= 1) {
		t.Errorf("largest error by certificate is %v: the certificate is not sharp, or nothing was ever pushed", worst)
	}
}

// A layered kernel must equal the one-shot kernel of the same parameters when it is
// solved, and miss no delta that it was not shown.
func TestSolvedLayeredEqualsKernel(t *testing.T) {
	for seed := range uint64(24) {
		config, weighted := layeredSettings(seed)
		w := newWorld(t, seed, 80, weighted)
		l := newLayered(t, config)
		view, _ := w.next()
		l.Solve(view, w.moves(view), 0)
		w.next() // not shown
		view, delta := w.next()
		l.Update(view, delta, w.moves(view))
		source := w.sourceVector(view.Vertices())
		want, _, err := Kernel(view, config.Kernel, source, KernelParams{Alpha: config.Alpha, Steps: config.Steps})
		if err != nil {
			t.Fatal(err)
		}
		if m := total(source); distance(layeredMasses(l), want) > (l.Certificate()+1e-13)*m {
			t.Fatalf("seed %d: %v from the one-shot kernel, certificate %v", seed, distance(layeredMasses(l), want), l.Certificate())
		}
	}
}

// A restored kernel must go on with the same bits as one that never stopped.
func TestRestoredLayeredGoesOnBitForBit(t *testing.T) {
	for seed := range uint64(48) {
		config, weighted := layeredSettings(seed)
		w := newWorld(t, seed, 120, weighted)
		l := newLayered(t, config)
		for step := range 16 {
			view, delta := w.next()
			l.Update(view, delta, w.moves(view))
			g, err := RestoreLayered(config, view, l.State())
			if err != nil {
				t.Fatal(err)
			}
			view, delta = w.next()
			moves := w.moves(view)
			l.Update(view, delta, moves)
			g.Update(view, delta, moves)
			if !slices.Equal(layeredMasses(l), layeredMasses(g)) || !slices.Equal(l.Touched(), g.Touched()) ||
				l.Certificate() != g.Certificate() || l.work != g.work {
				t.Fatalf("seed %d step %d: the restored kernel differs", seed, step)
			}
		}
	}
}

// Damaged state must be an error, never a panic.
func TestRestoreLayeredRefusesDamage(t *testing.T) {
	w := newWorld(t, 1, 50, false)
	config := LayeredConfig{Kernel: Truncated, Steps: 3}
	l := newLayered(t, config)
	view, delta := w.next()
	l.Update(view, delta, []SourceChange{{0, 1}, {1, 2}})
	state := l.State()
	restore := func(config LayeredConfig, view graphstore.View, s State) error {
		_, err := RestoreLayered(config, view, s)
		return err
	}
	for n := range state.Rest {
		if restore(config, view, State{Z: state.Z, R: state.R, Rest: state.Rest[:n]}) == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(state.Rest))
		}
	}
	for i := range state.Rest {
		damaged := slices.Clone(state.Rest)
		damaged[i] ^= 0xff
		_ = restore(config, view, State{Z: state.Z, R: state.R, Rest: damaged})
	}
	other := config
	other.Alpha = 0.2
	longer := config
	longer.Steps = 4
	for name, err := range map[string]error{
		"another alpha": restore(other, view, state), "another number of steps": restore(longer, view, state),
		"a residual too few": restore(config, view, State{Z: state.Z, R: state.R[1:], Rest: state.Rest}),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// Steady updates must not allocate.
func TestSteadyLayeredDoesNotAllocate(t *testing.T) {
	w := newWorld(t, 5, 400, false)
	l := newLayered(t, LayeredConfig{Kernel: Truncated, Tolerance: 1e-2})
	for range 60 {
		view, delta := w.next()
		l.Update(view, delta, nil)
	}
	view, _ := w.next()
	l.Solve(view, []SourceChange{{1, 5}, {2, 3}, {7, 1}}, 0)
	edit := func(weight float64) {
		for u := 10; u < 20; u++ {
			w.edge(u, u+30, weight)
		}
		view, delta := w.apply()
		l.Update(view, delta, nil)
	}
	for range 5 {
		edit(1)
		edit(0)
	}
	if n := testing.AllocsPerRun(50, func() { edit(1); edit(0) }); n > 0 {
		t.Errorf("%v allocations in two batches", n)
	}
}
