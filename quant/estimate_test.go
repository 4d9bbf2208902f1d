package quant_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// estimate is Quantify for a test.
func estimate(t testing.TB, s *stats.Statistics, o quant.Options) quant.Estimate {
	t.Helper()
	e, err := quant.Quantify(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// options are those of a method with lambda 0.6.
func options(m quant.Method) quant.Options { return quant.Options{Method: m, Lambda: .6} }

// hasFlag reports whether an estimate carries a flag of that name.
func hasFlag(e quant.Estimate, name string) bool {
	return slices.ContainsFunc(e.Flags, func(f string) bool { return quant.FlagName(f) == name })
}

// checkSane fails the test unless every output is a number, the shares are a
// distribution, and each interval holds its share.
func checkSane(t *testing.T, where string, e quant.Estimate) {
	t.Helper()
	if sum := total(e.Prevalence); !(math.Abs(sum-1) < 1e-9) {
		t.Fatalf("%s: shares %v sum to %v", where, e.Prevalence, sum)
	}
	for k, q := range e.Prevalence {
		if !(q >= 0 && e.Low[k] <= q+1e-12 && q <= e.High[k]+1e-12 && e.Low[k] >= 0 &&
			e.High[k] <= 1) {
			t.Fatalf("%s: class %d: share %v in %v..%v", where, k, q, e.Low[k], e.High[k])
		}
		if !(e.SE[k] >= 0 && e.SE[k] < 1e6) || !(e.NEff[k] >= 0) {
			t.Fatalf("%s: class %d: se %v, n_eff %v", where, k, e.SE[k], e.NEff[k])
		}
	}
	for _, x := range []float64{e.Lambda, e.Coverage, e.Gamma} {
		if !(x >= 0 && x <= 1) {
			t.Fatalf("%s: lambda %v, coverage %v, gamma %v", where, e.Lambda, e.Coverage, e.Gamma)
		}
	}
	for _, f := range e.Flags {
		if !slices.ContainsFunc(
			quant.FlagDocs(),
			func(d quant.FlagDoc) bool { return d.Name == quant.FlagName(f) },
		) {
			t.Fatalf("%s: flag %q is not documented", where, f)
		}
	}
}

// No statistics, however poor, may give an output that is not a number, a
// distribution that is none, or an interval without its share.
func TestPoorStatisticsGiveSaneEstimates(t *testing.T) {
	var w quant.Solver
	for seed := range uint64(240 / stride) {
		rng := rand.New(rand.NewPCG(seed, 17))
		s := poor(rng)
		for _, m := range quant.Methods() {
			for _, p := range []stats.Preset{stats.Density, stats.Reference, stats.Paper} {
				for _, lambda := range []float64{0, .9, 1, stats.LambdaAuto} {
					o := quant.Options{
						Method:       m,
						Preset:       p,
						Lambda:       lambda,
						Simultaneous: seed%24 == 0,
					}
					var e quant.Estimate
					if err := w.Estimate(&e, s, o); err != nil {
						t.Fatalf("seed %d %+v: %v", seed, o, err)
					}
					checkSane(t, fmt.Sprintf("seed %d %+v", seed, o), e)
				}
			}
		}
	}
}

// poor draws a small world and damages its statistics.
func poor(rng *rand.Rand) *stats.Statistics {
	k := 1 + rng.IntN(5)
	w := syntheticWorld(k, rng.IntN(4*k), 1+rng.IntN(12), rng.Uint64())
	a := make([]float64, len(w.edges))
	switch rng.IntN(4) {
	case 0: // no label reachable
	case 1: // one label has it all
		a[rng.IntN(len(a))] = rng.ExpFloat64()
	default:
		for v := range a {
			a[v] = math.Pow(10, -12*rng.Float64())
		}
	}
	c := w.communities[0]
	for v, l := range w.labels { // members with a label
		if l >= 0 && rng.IntN(3) == 0 {
			c.members, c.weights = append(c.members, v), append(c.weights, 1)
		}
	}
	switch rng.IntN(6) {
	case 0:
		c = community{}
	case 1: // nobody has a prediction
		for v := range w.predictions {
			if w.labels[v] < 0 {
				w.predictions[v] = nil
			}
		}
	case 2: // the classifier always says the same
		for v := range w.predictions {
			w.predictions[v] = make([]float64, k)
			w.predictions[v][k-1] = 1
		}
		w.describe()
	case 3: // every open member is gone
		for i := range c.members {
			if w.labels[c.members[i]] < 0 {
				w.labels[c.members[i]] = i % k
			}
		}
	}
	s := w.statistics(c, a)
	if rng.IntN(2) == 0 {
		s.Rows, s.OwnVariance = nil, nil
	}
	return s
}

// A solver that has served other problems must give the bits of a fresh one, and must not change
// other fields of the record.
func TestReusedSolverGivesTheSameBits(t *testing.T) {
	var w quant.Solver
	e := quant.Estimate{Community: "c", Position: 7}
	for seed := range uint64(60) {
		s := poor(rand.New(rand.NewPCG(seed, 19)))
		for _, m := range quant.Methods() {
			if err := w.Estimate(&e, s, options(m)); err != nil {
				t.Fatal(err)
			}
			want := estimate(t, s, options(m))
			want.Community, want.Position = "c", 7
			want.SEChange, e.SEChange = nil, nil
			if !reflect.DeepEqual(e, want) {
				t.Fatalf("seed %d %s:\n reused %+v\n fresh  %+v", seed, m, e, want)
			}
		}
	}
}

// Labelled members are counted exactly and shrink the interval; when all are
// labelled, the answer is the count.
func TestLabelledMembersAreCounted(t *testing.T) {
	w := syntheticWorld(3, 150, 200, 2)
	c := w.communities[0]
	a := w.masses(personalised, w.communities[:1])[0]
	open := w.statistics(c, a)
	n := float64(len(c.members))
	anchored := *open
	anchored.Members, anchored.Labelled, anchored.Anchored = n+50, 50, []float64{50, 0, 0}
	for _, m := range quant.Methods() {
		before, after := estimate(t, open, options(m)), estimate(t, &anchored, options(m))
		for k := range before.Prevalence {
			known := 0.0
			if k == 0 {
				known = 50
			}
			pairs := [][2]float64{
				{after.Prevalence[k], (known + n*before.Prevalence[k]) / (n + 50)},
				{after.Low[k], (known + n*before.Low[k]) / (n + 50)},
				{after.High[k], (known + n*before.High[k]) / (n + 50)},
				{after.SE[k], n * before.SE[k] / (n + 50)},
			}
			for i, p := range pairs {
				if math.Abs(p[0]-p[1]) > 1e-12 {
					t.Fatalf("%s class %d figure %d: %v, want %v", m, k, i, p[0], p[1])
				}
			}
		}
		all := *open
		all.Members, all.Labelled, all.Profiled, all.Anchored = 10, 10, 0, []float64{1, 2, 7}
		e := estimate(t, &all, options(m))
		for _, x := range [][]float64{e.Prevalence, e.Low, e.High} {
			if !slices.Equal(x, []float64{.1, .2, .7}) {
				t.Fatalf("%s: all labelled: %+v", m, e)
			}
		}
		if total(e.SE) != 0 || len(e.Flags) != 0 {
			t.Fatalf("%s: all labelled: se %v, flags %v", m, e.SE, e.Flags)
		}
	}
}

// permuted renames the classes of a world.
func permuted(w *world, to []int) *world {
	out := &world{
		classes:     w.classes,
		edges:       w.edges,
		communities: w.communities,
		labels:      slices.Clone(w.labels),
	}
	for _, p := range w.predictions {
		x := make([]float64, len(p))
		for k, v := range p {
			x[to[k]] = v
		}
		out.predictions = append(out.predictions, x)
	}
	for v, l := range out.labels {
		if l >= 0 {
			out.labels[v] = to[l]
		}
	}
	for _, p := range w.profiles { // not described again: ties of a majority go to the lowest class
		x := make([]float64, len(p.neighbors))
		for k, v := range p.neighbors {
			x[to[k]] = v
		}
		out.profiles = append(
			out.profiles,
			profile{neighbors: x, own: to[p.own], majority: to[p.majority]},
		)
	}
	return out
}

// Renaming the classes must rename the answer.
func TestPermutingClassesPermutesTheAnswer(t *testing.T) {
	to := []int{2, 0, 3, 1}
	w := syntheticWorld(4, 160, 240, 3)
	v := permuted(w, to)
	a := w.masses(personalised, w.communities)
	for b, c := range w.communities {
		s, z := w.statistics(c, a[b]), v.statistics(c, a[b])
		for _, m := range quant.Methods() {
			x, y := estimate(t, s, options(m)), estimate(t, z, options(m))
			for k := range to {
				d := math.Abs(x.Prevalence[k]-y.Prevalence[to[k]]) + math.Abs(x.SE[k]-y.SE[to[k]]) +
					math.Abs(x.Low[k]-y.Low[to[k]]) + math.Abs(x.High[k]-y.High[to[k]])
				if !(d < 1e-7) {
					t.Errorf("%s %s class %d: %v se %v, renamed %v se %v", c.name, m, k,
						x.Prevalence[k], x.SE[k], y.Prevalence[to[k]], y.SE[to[k]])
				}
			}
		}
	}
}

// times returns cells with each label n times, and masses scaled by f.
func times(c *stats.Cells, n, f float64) *stats.Cells {
	out := &stats.Cells{Z: c.Z, P: c.P}
	for i := range c.N {
		out.N = append(out.N, n*c.N[i])
		out.A1 = append(out.A1, n*f*c.A1[i])
		out.A2 = append(out.A2, n*f*f*c.A2[i])
	}
	return out
}

// scaled returns statistics with every label n times and every mass times f.
func scaled(s *stats.Statistics, n, f float64) *stats.Statistics {
	out := *s
	out.Rows = nil
	out.Soft, out.SoftPair = times(s.Soft, n, f), times(s.SoftPair, n, f)
	out.Hard, out.HardPair = times(s.Hard, n, f), times(s.HardPair, n, f)
	out.ClassN, out.ClassA1, out.ClassA2 = nil, nil, nil
	for i := range s.ClassN {
		out.ClassN = append(out.ClassN, n*s.ClassN[i])
		out.ClassA1 = append(out.ClassA1, n*f*s.ClassA1[i])
		out.ClassA2 = append(out.ClassA2, n*f*f*s.ClassA2[i])
	}
	if p := s.Posterior; p != nil {
		out.Posterior = &stats.Posterior{}
		*out.Posterior = *p
		out.Posterior.Residuals = multiplied(p.Residuals, n, f)
	}
	return &out
}

// Every label twice changes no share that does not weigh variances, and doubles
// the effective labels; scaling all masses changes nothing under density weights.
func TestScalingLabelsAndMasses(t *testing.T) {
	s := syntheticStatistics(3, 120, 200, 4)
	plain, double, mass := scaled(s, 1, 1), scaled(s, 2, 1), scaled(s, 1, 1024)
	for _, m := range quant.Methods() {
		x, y, z := estimate(t, plain, options(m)), estimate(t, double, options(m)), estimate(
			t,
			mass,
			options(m),
		)
		for k := range x.Prevalence {
			if m != quant.Auto && math.Abs(x.Prevalence[k]-y.Prevalence[k]) > 1e-8 {
				t.Errorf("%s: %v, with every label twice %v", m, x.Prevalence, y.Prevalence)
			}
			if math.Abs(2*x.NEff[k]-y.NEff[k]) > 1e-6 {
				t.Errorf("%s: n_eff %v, with every label twice %v", m, x.NEff, y.NEff)
			}
			if math.Abs(x.Prevalence[k]-z.Prevalence[k])+math.Abs(x.SE[k]-z.SE[k]) > 1e-9 {
				t.Errorf("%s: %v, with masses scaled %v", m, x.Prevalence, z.Prevalence)
			}
		}
	}
}

// A row without a quantifier is auto, so a new method without one would publish auto's estimates.
func TestOnlyAutoHasNoQuantifier(t *testing.T) {
	if got := quant.WithoutQuantifier(); !slices.Equal(got, []quant.Method{quant.Auto}) {
		t.Errorf("rows without a quantifier: %v", got)
	}
}

// With constant weights sis is pacc and sis-nacc is nacc; the paper's preset at
// lambda one is the density's.
func TestMethodsMeetWhereTheyShould(t *testing.T) {
	s := syntheticStatistics(3, 120, 200, 5)
	same := func(a, b quant.Options) {
		t.Helper()
		x, y := estimate(t, s, a), estimate(t, s, b)
		for k := range x.Prevalence {
			if math.Abs(x.Prevalence[k]-y.Prevalence[k])+math.Abs(x.SE[k]-y.SE[k]) > 1e-9 {
				t.Errorf("%+v gives %v, %+v gives %v", a, x.Prevalence, b, y.Prevalence)
			}
		}
	}
	same(quant.Options{Method: quant.SIS}, quant.Options{Method: quant.PACC})
	same(quant.Options{Method: quant.SISNACC}, quant.Options{Method: quant.NACC})
	same(
		quant.Options{Method: quant.SIS, Lambda: 1, Preset: stats.Paper},
		quant.Options{Method: quant.SIS, Lambda: 1},
	)
	same(
		quant.Options{Method: quant.SIS, Lambda: 1, Preset: stats.Reference},
		quant.Options{Method: quant.SIS, Lambda: 1},
	)
	// LambdaAuto stands for the same weights under every preset.
	same(
		quant.Options{Method: quant.SIS, Lambda: stats.LambdaAuto, Preset: stats.Paper},
		quant.Options{Method: quant.SIS, Lambda: stats.LambdaAuto},
	)
}

// Statistics without the inputs of a method are refused.
func TestIncompleteStatisticsAreRefused(t *testing.T) {
	damage := map[string]func(*stats.Statistics){
		"no cells":     func(s *stats.Statistics) { s.Soft = nil },
		"no posterior": func(s *stats.Statistics) { s.Posterior = nil },
	}
	for name, harm := range damage {
		s := syntheticStatistics(3, 30, 30, 6)
		harm(s)
		_, auto := quant.Quantify(s, quant.DefaultOptions()) // reads posteriors, and no cells
		_, sis := quant.Quantify(s, quant.Options{Method: quant.SIS})
		if auto == nil && sis == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
