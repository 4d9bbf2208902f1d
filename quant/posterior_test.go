package quant_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// floored returns a prediction as a posterior: no entry below 1e-4.
func floored(p []float64) []float64 {
	out := slices.Clone(p)
	for i, x := range out {
		out[i] = max(x, 1e-4)
	}
	normalise(out)
	return out
}

// posterior makes the predictions of a world the posteriors of its vertices, nil without
// a label that has one.
func (w *world) posterior(c community, a []float64) *stats.Posterior {
	k := w.classes
	p := &stats.Posterior{Version: 1, Prior: make([]float64, k), LabelGate: 1}
	residuals, masses := stats.NewLabelResiduals(k), []float64(nil)
	byClass := newMatrix(k, 0)
	n, means, counts := 0.0, newMatrix(k, k), make([]float64, k)
	for v, l := range w.labels {
		if l < 0 || w.predictions[v] == nil {
			continue
		}
		pi := floored(w.predictions[v])
		n++
		counts[l]++
		byClass[l] = append(byClass[l], float64(v))
		residuals.Add(l, 1, pi)
		masses = append(masses, a[v])
		for i, x := range pi {
			means[l][i] += x
		}
	}
	if n == 0 {
		return nil
	}
	p.Residuals = residuals.Weigh(masses)
	for i := range k {
		p.Prior[i] = (counts[i] + .1) / (n + .1*float64(k))
		cov := newMatrix(k, k)
		for _, v := range byClass[i] {
			off := floored(w.predictions[int(v)])
			for j := range off {
				off[j] -= means[i][j] / counts[i]
			}
			cov.add(1/(counts[i]*max(counts[i]-1, 1)), off, off)
		}
		for j := range k {
			p.Within = append(p.Within, cov[j][j])
		}
	}
	setMembers(p, func(visit func(float64, []float64)) {
		for i, v := range c.members {
			if w.labels[v] < 0 && w.predictions[v] != nil {
				visit(c.weights[i], floored(w.predictions[v]))
			}
		}
	})
	p.Inside, p.Distinct, p.Vertices = 12, float64(len(c.members)), 1e6
	p.Expected = func(distinct float64, shares []float64) float64 { return distinct / 50 }
	return p
}

// reading is auto written out from its formulas, member by member.
type reading struct {
	q, likely, mean, d []float64
	gamma, share       float64
	common             float64 // covariance of neighbours, for members that count once
	r                  matrix  // responsibilities at q
	m                  []float64
	first, inverse     matrix // J⁺ of q(1), and of q, which variance sets
}

func read(p *stats.Posterior, weigh func(r *stats.Residuals) []float64) *reading {
	out := &reading{d: weigh(p.Residuals)}
	k := len(p.Prior)
	var pi matrix
	n := 0.0
	for z, m := range p.Counts {
		pi, out.m, n = append(pi, p.Means[z*k:(z+1)*k]), append(out.m, m), n+m
	}
	solve := func(gamma float64) []float64 {
		q := make([]float64, k)
		out.r = newMatrix(len(pi), k)
		for l := range pi {
			for i, x := range pi[l] {
				q[i] += out.m[l] * x / n
			}
		}
		for range 5000 {
			next := make([]float64, k)
			for l := range pi {
				for i, x := range pi[l] {
					out.r[l][i] = x * math.Pow(q[i]/p.Prior[i], gamma)
				}
				normalise(out.r[l])
				for i, x := range out.r[l] {
					next[i] += out.m[l] * x / n
				}
			}
			q = next
		}
		return q
	}
	out.mean, out.likely = solve(0), solve(1)
	out.first = out.jacobian(out.likely, 1).inverse()
	e0 := p.Expected(p.Distinct, out.likely)
	out.share = min(1, (e0+2*math.Sqrt(e0)+2)/p.Inside/.95)
	out.gamma = min(.95*out.share, p.LabelGate)
	if p.Agreement != nil {
		out.common = (2*p.Inside*p.Agreement[0] +
			4*p.Inside*p.Inside/p.Degrees*p.Agreement[1]) / p.Distinct
	}
	out.q = solve(out.gamma)
	return out
}

// jacobian returns J for these shares; r has their responsibilities.
func (r *reading) jacobian(q []float64, gamma float64) matrix {
	k, n := len(q), 0.0
	for _, m := range r.m {
		n += m
	}
	s, j := newMatrix(k, k), newMatrix(k, k)
	for l, m := range r.m {
		s.add(m/n, r.r[l], r.r[l])
	}
	for i := range k {
		j[i][i] = 1
		for l := range k {
			j[i][l] += gamma * s[i][l] / max(q[l], 1e-3)
		}
		j[i][i] -= gamma * q[i] / max(q[i], 1e-3)
	}
	return j
}

// variance returns V, given its residual part.
func (r *reading) variance(label matrix) matrix {
	k, n, squares := len(r.q), 0.0, 0.0
	for _, m := range r.m {
		n, squares = n+m, squares+m*m
	}
	r.inverse = r.jacobian(r.q, r.gamma).inverse()
	v := newMatrix(k, k)
	place := (1 - r.gamma) * (1 + r.common*n*n/squares/float64(len(r.m)))
	for l, m := range r.m {
		v.add(-place*m*m/(n*n), r.r[l], r.r[l])
		for i, x := range r.r[l] {
			v[i][i] += place * m * m / (n * n) * x
		}
	}
	for i := range k {
		v[i][i] -= r.gamma * max(r.likely[i], 1e-3) * squares / (n * n)
		for l := range k {
			v[i][l] += r.gamma * r.first[i][l] * max(r.likely[l], 1e-3) * squares / (n * n)
		}
	}
	for i := range k {
		for l := range k {
			x := func(i int) float64 { return r.likely[i] - r.mean[i] - r.d[i] }
			v[i][l] += (1-r.gamma)*(1-r.gamma)*label[i][l] + r.gamma*((1+r.share)/2-.75*r.gamma)*x(
				i,
			)*x(l)
		}
		v[i][i] += .25e-4 * (1 - 1/float64(k))
	}
	return v
}

// auto must equal its formulas, written out with dense loops.
func TestAutoIsItsDefinition(t *testing.T) {
	for seed := range uint64(12) {
		k := 2 + int(seed%4)
		w := syntheticWorld(k, 60*k, 80, seed)
		c, a := w.communities[0], w.masses(personalised, w.communities[:1])[0]
		s := w.statistics(c, a)
		mean, weights, total := 0.0, []float64{}, 0.0
		var residuals matrix
		for v, l := range w.labels {
			if l >= 0 {
				r := floored(w.predictions[v])
				for i := range r {
					r[i] = -r[i]
				}
				r[l]++
				residuals, weights, mean = append(residuals, r), append(weights, a[v]), mean+a[v]
			}
		}
		mean /= float64(len(weights))
		d, label := make([]float64, k), newMatrix(k, k)
		squares := 0.0
		for l := range weights {
			weights[l] = .9*weights[l]/mean + .1
			total += weights[l]
			squares += weights[l] * weights[l]
		}
		effective, n := total*total/squares, float64(len(residuals))
		plain, freedom := make([]float64, k), float64(k+1)
		for _, r := range residuals {
			for i, x := range r {
				plain[i] += x / n
			}
		}
		for l, r := range residuals {
			for i, x := range r {
				d[i] += weights[l] / total * x
			}
		}
		for l, r := range residuals {
			off := slices.Clone(r)
			for i := range off {
				off[i] -= d[i]
			}
			scale := 1 / (effective * (effective - 1 + freedom))
			label.add(scale*effective*effective*weights[l]*weights[l]/(total*total), off, off)
			for i, x := range r {
				off[i] = x - plain[i]
			}
			label.add(scale*freedom/(n-1), off, off)
		}
		s.Posterior.Inside = float64(1 + 5*seed)
		s.Posterior.Degrees, s.Posterior.Agreement = 300, []float64{.2, .1}
		want := read(s.Posterior, func(*stats.Residuals) []float64 { return d })
		free := make([]float64, k)
		for i := range free {
			free[i] = want.q[i] + (1-want.gamma)*d[i]
		}
		solve.ProjectSimplex(free, free)
		v := want.variance(label)
		e := estimate(t, s, quant.Options{Method: quant.Auto})
		if math.Abs(e.Gamma-want.gamma) > 1e-5 {
			t.Errorf("seed %d: gamma %v, want %v", seed, e.Gamma, want.gamma)
		}
		near(t, "synthetic", "auto", "shares", e.Prevalence, free, 3e-5)
		for i := range v {
			if se := math.Sqrt(v[i][i]); math.Abs(e.SE[i]-se) > 1e-3*se {
				t.Errorf("seed %d: error of class %d is %v, want %v", seed, i, e.SE[i], se)
			}
		}
	}
}

// A declared selection must replace the inference from edges.
func TestSelectionIsDeclared(t *testing.T) {
	s := syntheticStatistics(3, 120, 100, 3)
	for selection, want := range map[stats.Selection]float64{
		stats.ByClass: .95, stats.ByPlace: 0,
		stats.ByAttribute: 0,
	} {
		s.Posterior.Selected = selection
		if e := estimate(t, s, quant.Options{Method: quant.Auto}); e.Gamma != want {
			t.Errorf("selected by %s: gamma %v, want %v", selection, e.Gamma, want)
		}
	}
}

// The community of everyone must have the shares of the labels, for any posteriors, with the error
// of the distance between two samples of those sizes. A community of less than half of everyone
// does not use them.
func TestMostOfTheGraphUsesTheSharesOfLabels(t *testing.T) {
	s := syntheticStatistics(3, 120, 100, 3)
	s.Posterior.Vertices = 2 * s.Posterior.Distinct
	alone := estimate(t, s, quant.Options{Method: quant.Auto})
	s.Posterior.Vertices = s.Posterior.Distinct
	all := estimate(t, s, quant.Options{Method: quant.Auto})
	labels := estimate(t, s, quant.Options{Method: quant.MLPE})
	near(t, "everyone", "auto", "shares", all.Prevalence, labels.Prevalence, 1e-12)
	for i, q := range all.Prevalence {
		if want := math.Sqrt(q * (1 - q) * (1./120 + 1./100)); math.Abs(all.SE[i]-want) > 1e-9 {
			t.Errorf(
				"the error of class %d is %v, and that of labels less members %v", i, all.SE[i],
				want,
			)
		}
	}
	if slices.Equal(alone.Prevalence, all.Prevalence) {
		t.Errorf("half of the graph has the shares of everyone, %v", alone.Prevalence)
	}
}

// No interval of any method may have no width where the standard error is positive, not even that
// of a share which is nothing because less than nothing would fit better.
func TestIntervalsHaveAWidth(t *testing.T) {
	methods, err := quant.ParseMethods("all")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		w := syntheticWorld(2+int(seed%5), 40, 10, seed)
		for at, a := range w.masses(personalised, w.communities) {
			for _, m := range methods {
				e := estimate(t, w.statistics(w.communities[at], a), quant.Options{Method: m})
				for i := range e.SE {
					if e.SE[i] > 0 && !(e.High[i]-e.Low[i] >= min(e.SE[i], 1)-1e-12) {
						t.Errorf(
							"seed %d %s class %d: %v to %v with a standard error of %v", seed, m, i,
							e.Low[i], e.High[i], e.SE[i],
						)
					}
				}
			}
		}
	}
}

// Two labels near the community that agree by chance are no proof: a place must have an
// error like that of two draws, not like that of two equal residuals.
func TestTwoLabelsThatAgreeAreNoProof(t *testing.T) {
	for seed := range uint64(20) {
		w := syntheticWorld(2, 40, 50, seed)
		a, near := make([]float64, len(w.labels)), 0
		for v, l := range w.labels {
			w.predictions[v] = []float64{.5, .5} // so that residuals are one half up or down
			if l == int(seed%2) && near < 2 {
				a[v], near = 1, near+1
			}
		}
		s := w.statistics(w.communities[0], a)
		s.Posterior.Selected = stats.ByPlace
		e := estimate(t, s, quant.Options{Method: quant.Auto})
		if want := math.Sqrt(.25/2) * 2 / 3; near == 2 && e.SE[0] < want {
			t.Errorf(
				"seed %d: error %v, want at least two thirds of that of two draws, %v", seed,
				e.SE[0], want,
			)
		}
	}
}

// If old labels have almost no weight, the newest one determines everything, and residuals have no
// variance. The rounding error of this variance must not become an error that is not a number.
func TestASingleLabelHasErrors(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		k := 2 + int(seed%6)
		w := syntheticWorld(k, 40, 10, seed)
		s := w.statistics(w.communities[0], make([]float64, len(w.labels)))
		p := s.Posterior
		residuals, masses := stats.NewLabelResiduals(k), []float64(nil)
		p.Own = stats.NewResiduals(k)
		for l := range 8 {
			pi := make([]float64, k)
			for i := range pi {
				pi[i] = r.Float64()
			}
			normalise(pi)
			class, g := r.IntN(k), math.Pow(2, -30*float64(l))
			residuals.Add(class, g, pi)
			p.Own.Add(class, g, pi)
			masses = append(masses, float64(seed%2))
		}
		p.Residuals = residuals.Weigh(masses)
		var solver quant.Solver
		var e quant.Estimate
		if err := solver.Estimate(&e, s, quant.Options{Method: quant.Auto}); err != nil {
			t.Fatal(err)
		}
		for i, x := range solver.SEChange(solver.Snapshot(), stats.Turnover{Joined: 1}) {
			if !(x >= 0 && e.SE[i] >= 0) {
				t.Fatalf("seed %d class %d: errors %v, of the change %v", seed, i, e.SE[i], x)
			}
		}
	}
}

// The error of the coefficients is taken from the last estimate until that is of coefficients that
// labels determine otherwise, of other members, or of another gamma. Of other coefficients it has
// no influence on differences.
func TestErrorOfTheCoefficientsIsKeptWhileLittleChanges(t *testing.T) {
	const k = 3
	w := syntheticWorld(k, 40, 10, 1)
	s := w.statistics(w.communities[0], make([]float64, len(w.labels)))
	p, gamma := s.Posterior, .5
	covariance := func(variances ...float64) []float64 {
		c := make([]float64, k*k)
		for i, x := range variances {
			c[i*k+i] = x
		}
		return c
	}
	var solver quant.Solver
	var e quant.Estimate
	errors := func() []float64 {
		if err := solver.Estimate(&e, s, quant.Options{Method: quant.Auto}); err != nil {
			t.Fatal(err)
		}
		return e.SE
	}
	// shares are where a solve ends
	alike := func(x, y float64) bool { return math.Abs(x-y) <= 1e-3*math.Abs(y) }
	p.Gamma, p.Coefficients = &gamma, covariance(0.002, 0.002, 0.002)
	p.Labels = func() *stats.LabelSample { return stats.NewLabelSample(k) }
	first := errors()
	last := solver.Snapshot()
	other := covariance(
		0.006,
		0,
		0,
	) // of another fit it would be another version: these tell which were read
	for _, test := range []struct {
		name   string
		kept   bool
		change func()
	}{
		{"nothing", true, func() {}},
		{"gamma a little", true, func() { gamma = .51 }},
		{"gamma", false, func() { gamma = 0 }},
		{"the members", false, func() { p.Turnover.Joined = 100 }},
		{"the model", false, func() { p.Turnover.Reset = true }},
		{"the coefficients", true, func() { p.Version++ }},
		{"their covariance", false, func() { p.Coefficients = covariance(0.003, 0, 0) }},
		{"the coefficients a hundred times", false, func() { p.Version += 100 }},
	} {
		gamma, p.Turnover, p.Version, p.Last, p.Coefficients = .5, stats.Turnover{}, 1, nil, other
		test.change()
		anew := errors()
		p.Last = last.Memorised()
		if got := errors(); slices.EqualFunc(got, anew, alike) == test.kept {
			t.Errorf(
				"%s changed: errors %v, before %v, computed anew %v", test.name, got, first, anew,
			)
		}
		if have, want := e.Influence != nil, !test.kept || p.Version == 1; have != want {
			t.Errorf("%s changed: an influence: %v, want %v", test.name, have, want)
		}
	}
	// Where it is most of the variance, it is kept over a smaller distance.
	gamma, p.Turnover, p.Version, p.Last, p.Coefficients = .5, stats.Turnover{}, 1, nil, covariance(
		1,
		1,
		1,
	)
	errors()
	last = solver.Snapshot()
	gamma, p.Coefficients = .51, covariance(3, 0, 0)
	anew := errors()
	p.Last = last.Memorised()
	if got := errors(); !slices.EqualFunc(got, anew, alike) {
		t.Errorf(
			"gamma changed a little, where coefficients are most of the variance: errors %v, "+
				"computed anew %v",
			got,
			anew,
		)
	}
}

// Residuals from sums by class must be those of single labels where all labels of a class have one
// mass, also where those of one class are older and so weigh less than those of another.
func TestResidualsByClassAreThoseOfLabels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	all := stats.NewLabelResiduals(2)
	byClass := []*stats.Residuals{stats.NewResiduals(2), stats.NewResiduals(2)}
	var masses []float64
	first, a1, a2 := make([]float64, 2), make([]float64, 2), make([]float64, 2)
	for i := range 60 {
		class, x := i%2, r.Float64()
		g, a := []float64{.1, 1}[class], []float64{3, .5}[class]
		all.Add(class, g, []float64{x, 1 - x})
		byClass[class].Add(class, g, []float64{x, 1 - x})
		masses, a1[class], a2[class] = append(masses, a), a1[class]+g*a, a2[class]+g*g*a*a
		first[0], first[1] = first[0]+g*a*(1-float64(class)-x), first[1]+g*a*(float64(class)-1+x)
	}
	want, wanted := weighted(all.Weigh(masses), 2, .3)
	got, given := weighted(stats.NewClassResiduals(byClass).Weigh(a1, a2, first), 2, .3)
	if math.Abs(got/want-1) > 1e-12 {
		t.Errorf("%v effective labels by class, %v by label", got, want)
	}
	for i, x := range wanted {
		if math.Abs(given[i]/x-1) > 1e-9 {
			t.Errorf("variance %d is %v by class, %v by label", i, given[i], x)
		}
	}
}
