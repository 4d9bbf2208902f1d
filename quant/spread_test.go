package quant_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// Members selected by class, and a weak but calibrated classifier: it predicts one of two classes
// with 65 %. The error of the shares must be the stated one, which assumes that the members'
// classes are given and not drawn. If they were drawn, the error would be 1/.3 of it, with .3 the
// root of the part of the variance that the classifier explains.
func TestMembersSelectedByClassAreNoDrawOfClasses(t *testing.T) {
	const draws, explained = 600, .09
	draw, gamma := weakClassifier(t, 500), 1.
	squares, stated := 0.0, 0.0
	for range draws {
		e := draw(.5, &gamma)
		squares += (e.Prevalence[0] - .5) * (e.Prevalence[0] - .5) / draws
		apart := (e.Prevalence[0] - .5) * (1 - explained) // of both readings
		stated += (e.SE[0]*e.SE[0] - .25*apart*apart - .5*.005*.005) / draws
	}
	if ratio := math.Sqrt(stated / squares); math.Abs(ratio-1) > .1 {
		t.Errorf("errors are stated as %.2f of what they are", ratio)
	}
}

// Where all members are of one class, q(gamma) is drawn to the shares of the labels, and by how
// much is as noisy as q(1) is: intervals must hold the truth even so. With the noise of q(gamma)
// itself they do in 79 %.
func TestOneClassOfAWeakClassifierIsHeld(t *testing.T) {
	const draws = 600
	draw, gamma, held := weakClassifier(t, 100), .9, 0.0
	for range draws {
		if e := draw(1, &gamma); e.High[0] >= 1-1e-12 {
			held += 1. / draws
		}
	}
	if held < .87 {
		t.Errorf("%.1f %% are held", 100*held)
	}
}

// weakClassifier returns a function that draws members of two classes, with a share of the first,
// and estimates them by auto. The classifier predicts the true class with 65 % in 65 % of the
// cases.
func weakClassifier(t *testing.T, members int) func(share float64, gamma *float64) quant.Estimate {
	r := rand.New(rand.NewPCG(1, 2))
	none := stats.NewResiduals(2)
	for class := range 2 {
		for other := range 2 {
			for range []int{35, 65}[delta(class, other)] {
				none.Add(class, 1, says(other))
			}
		}
	}
	return func(share float64, gamma *float64) quant.Estimate {
		p := &stats.Posterior{
			Version:   1,
			Prior:     []float64{.5, .5},
			LabelGate: 1,
			Gamma:     gamma,
			Residuals: none,
			Within:    make([]float64, 4),
		}
		p.Expected = func(float64, []float64) float64 { return 0 }
		setMembers(p, func(visit func(float64, []float64)) {
			for v := range members {
				said := 0
				if float64(v) >= share*float64(members) {
					said = 1
				}
				if r.Float64() < .35 {
					said = 1 - said
				}
				visit(1, says(said))
			}
		})
		return estimate(t, &stats.Statistics{
			K: 2, Members: float64(members), Profiled: float64(members),
			Anchored: make([]float64, 2), Posterior: p,
			ClassN: []float64{100, 100}, ClassA1: make([]float64, 2), ClassA2: make([]float64, 2),
		}, quant.Options{Method: quant.Auto})
	}
}

// says returns the probabilities of a classifier that says this one of two classes.
func says(class int) []float64 {
	p := []float64{.35, .35}
	p[class] = .65
	return p
}

func delta(i, j int) int {
	if i == j {
		return 1
	}
	return 0
}

// The variance of the labels beyond the coefficients must be the sum over labels of the squares of
// their effect on the mean responsibility of the members of their class, minus the part that the
// coefficients explain.
func TestSpreadOfTheLabelsIsItsDefinition(t *testing.T) {
	const shared = 2
	for seed := range uint64(10) {
		k := 2 + int(seed%3)
		w := syntheticWorld(k, 40*k, 60, seed)
		s := w.statistics(w.communities[0], make([]float64, len(w.labels)))
		r := rand.New(rand.NewPCG(seed, 3))
		p, size := s.Posterior, shared+k
		want := read(p, func(*stats.Residuals) []float64 { return make([]float64, k) })
		views := make([]float64, shared*k)
		p.Shared = shared
		p.Gamma, p.Views, p.Coefficients = &want.gamma, make([]float64, len(p.Means)*shared), make(
			[]float64,
			size*size,
		)
		p.Labels = func() *stats.LabelSample { return stats.NewLabelSample(k) }
		for i := range size {
			p.Coefficients[i*size+i] = .5 / float64(40*k)
		}
		p.Residuals.ByClass = [2][]float64{
			make([]float64, k),
			make([]float64, k),
		} // they do not move
		errors := func() []float64 {
			var solver quant.Solver
			var e quant.Estimate
			if err := solver.Estimate(&e, s, quant.Options{Method: quant.Auto}); err != nil {
				t.Fatal(err)
			}
			return solver.Snapshot().Memory.Error.ErrorVariance
		}
		without := errors()
		sample := stats.NewLabelSample(k)
		var classes []int
		var weights, mass, squares, effective []float64
		mass, squares, effective = make([]float64, k), make([]float64, k), make([]float64, k)
		var responses, scores matrix
		means := newMatrix(k, k)
		for v, class := range w.labels {
			if class < 0 || w.predictions[v] == nil {
				continue
			}
			for i := range views {
				views[i] = r.NormFloat64()
			}
			g, pi := .5+r.Float64(), floored(w.predictions[v])
			sample.Count(class, g)
			sample.Draw(class, g, 1, pi, views)
			response, score := slices.Clone(pi), make([]float64, size)
			for i := range response {
				response[i] *= math.Pow(want.q[i]/p.Prior[i], want.gamma)
				for j := range shared {
					score[j] += (float64(delta(i, class)) - pi[i]) * views[j*k+i]
				}
				score[shared+i] = float64(delta(i, class)) - pi[i]
			}
			normalise(response)
			classes, weights = append(classes, class), append(weights, g)
			responses, scores = append(responses, response), append(scores, score)
			mass[class], squares[class] = mass[class]+g, squares[class]+g*g
			for i, x := range response {
				means[class][i] += g * x
			}
		}
		b, moved := newMatrix(k, k), newMatrix(k, size)
		for l, class := range classes {
			effective[class] = mass[class] * mass[class] / squares[class]
			off := responses[l]
			for i := range off {
				off[i] = (off[i] - means[class][i]/mass[class]) * math.Sqrt(
					effective[class]/(effective[class]-1),
				) * want.q[class] * weights[l] / mass[class]
			}
			b.add(1, off, off)
			moved.add(weights[l], off, scores[l])
		}
		want.variance(newMatrix(k, k))
		for i := range k {
			for j := range k {
				for n := range size {
					b[i][j] -= p.Coefficients[n*size+n] * moved[i][n] * moved[j][n]
				}
			}
		}
		b = want.inverse.times(b).times(want.inverse.transposed())
		p.Labels = func() *stats.LabelSample { return sample }
		for i, x := range errors() {
			if x -= without[i]; math.Abs(x-b[i][i]) > 1e-4*b[i][i] {
				t.Errorf("seed %d: class %d: the variance is %v, want %v", seed, i, x, b[i][i])
			}
		}
	}
}
