package auto

import (
	"math"
	"math/rand/v2"
	"testing"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// drawSelected draws a community whose classes, or whose predictions, have shares unlike those
// of the graph. Vertices have one of K classes, a prediction that is right in 85 % of the cases,
// and a posterior that is the truth given the prediction and another view of the class, right in
// 70 %. It returns the shares of the classes in the community, too.
func drawSelected(r *rand.Rand, byClass bool) (p *stats.Posterior, truth []float64) {
	const k, n, right, other = 4, 400, .85, .7
	draw := func(class int, sure float64) int {
		if r.Float64() < sure {
			return class
		}
		return (class + 1 + r.IntN(k-1)) % k
	}
	likelihood := func(seen, class int, sure float64) float64 {
		if seen == class {
			return sure
		}
		return (1 - sure) / (k - 1)
	}
	want := []float64{.55, .25, .15, .05}
	r.Shuffle(k, func(i, j int) { want[i], want[j] = want[j], want[i] })
	p, truth = &stats.Posterior{LabelGate: 1, Vertices: 1e6}, make([]float64, k)
	for range k {
		p.Prior, p.Mass, p.Tops = append(p.Prior, 1./k), append(p.Mass, 1e6/k), append(p.Tops, 1e6/k)
	}
	var pi, tops []float64
	for len(tops) < n {
		class := r.IntN(k)
		top, view := draw(class, right), draw(class, other)
		selected := top
		if byClass {
			selected = class
		}
		if r.Float64() > want[selected] {
			continue
		}
		row, total := make([]float64, k), 0.0
		for i := range row {
			row[i] = likelihood(top, i, right) * likelihood(view, i, other)
			total += row[i]
		}
		solve.ScaleTo(row, 1/total, row)
		pi, tops = append(pi, row...), append(tops, float64(top))
		truth[class] += 1. / n
	}
	p.Distinct = n
	p.Expected = func(float64, []float64) float64 { return 1 }
	p.Predicted = make([]float64, k)
	for _, top := range tops {
		p.Predicted[int(top)]++
	}
	setMembers(p, func(visit func(float64, []float64)) {
		for v := range n {
			visit(1, pi[v*k:(v+1)*k])
		}
	})
	return p, truth
}

// Members that were picked by their predictions must be told from those that were picked by
// their classes, and their mean posterior be taken instead of the shares under prior shift.
func TestSelectionByThePredictionIsToldFromThatByClass(t *testing.T) {
	const rounds = 200
	for _, byClass := range []bool{true, false} {
		var likely float64
		var errors, meanErrors, shiftErrors float64
		for seed := range uint64(rounds) {
			p, truth := drawSelected(rand.New(rand.NewPCG(seed, 3)), byClass)
			var u histogram
			k := len(truth)
			read := u.read(p, nil)
			likely += byClassOf(read.evidence) / rounds
			for i := range truth {
				errors += math.Abs(read.tempered[i]-truth[i]) / float64(k*rounds)
				meanErrors += math.Abs(read.mean[i]-truth[i]) / float64(k*rounds)
				shiftErrors += math.Abs(read.likely[i]-truth[i]) / float64(k*rounds)
			}
		}
		t.Logf("by class %t: likelihood of that %.2f; mean error %.4f, of the mean %.4f, under prior shift %.4f", byClass, likely, errors, meanErrors, shiftErrors)
		if right, wrong := min(meanErrors, shiftErrors), max(meanErrors, shiftErrors); errors > right+(wrong-right)/3 {
			t.Errorf("by class %t: the error is %.4f, with the right reading %.4f", byClass, errors, right)
		}
		if byClass != (likely > .75) || byClass == (likely < .5) {
			t.Errorf("by class %t: taken for that with %.2f", byClass, likely)
		}
	}
}

// Who counts several times is one witness: a few members must not seem to be many.
func TestOneMemberOftenIsLittleEvidence(t *testing.T) {
	p, _ := drawSelected(rand.New(rand.NewPCG(5, 3)), false)
	few := func(times float64) (byClass float64) {
		some, k := *p, len(p.Prior)
		some.Predicted = make([]float64, k)
		setMembers(&some, func(visit func(float64, []float64)) {
			for v := range 5 {
				visit(times, p.Means[v*k:(v+1)*k])
				some.Predicted[v%k] += times
			}
		})
		var u histogram
		return byClassOf(u.read(&some, nil).evidence)
	}
	if once, often := few(1), few(40); math.Abs(once-often) > 1e-9 {
		t.Errorf("five members say %v, each forty times %v", once, often)
	}
}

// setMembers gives a posterior a cell for every member, of this multiplicity and posterior.
func setMembers(p *stats.Posterior, each func(visit func(multiplicity float64, pi []float64))) {
	p.Means, p.Counts, p.Squares = nil, nil, 0
	each(func(multiplicity float64, pi []float64) {
		p.Means = append(p.Means, pi...)
		p.Counts = append(p.Counts, multiplicity)
		p.Squares += multiplicity * multiplicity
	})
}
