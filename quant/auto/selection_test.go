package auto

import (
	"math"
	"math/rand/v2"
	"testing"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// selection is how members of a community are drawn.
type selection int

const (
	selectedByClass selection = iota
	selectedByPrediction
	selectedBySureness
)

// drawSelected draws a community of one of three kinds: its classes have shares unlike those of the
// graph, or its predictions have, or its members are those with two views of one class. Vertices
// have one of K classes, a prediction that is right in 85 % of the cases, and a posterior that is
// the truth given the prediction and another view of the class, right in 70 %: a cell for each pair
// of them. It returns the shares of the classes in the community, too.
func drawSelected(r *rand.Rand, by selection) (p *stats.Posterior, truth []float64) {
	const k, n, right, other, vertices = 4, 400, .85, .7, 1e6
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
	p, truth = &stats.Posterior{LabelGate: 1, Vertices: vertices}, make([]float64, k)
	for top := range k {
		p.Prior, p.Mass = append(p.Prior, 1./k), append(p.Mass, vertices/k)
		p.Tops = append(p.Tops, vertices/k)
		for view := range k {
			pi := make([]float64, k)
			for i := range pi {
				pi[i] = likelihood(top, i, right) * likelihood(view, i, other)
			}
			part := solve.Sum(pi)
			solve.ScaleTo(pi, 1/part, pi)
			p.Means, p.Sizes = append(p.Means, pi...), append(p.Sizes, vertices*part/k)
		}
	}
	p.Counts, p.Predicted = make([]float64, k*k), make([]float64, k)
	for p.Distinct < n {
		class := r.IntN(k)
		top, view := draw(class, right), draw(class, other)
		switch {
		case by == selectedByClass && r.Float64() > want[class],
			by == selectedByPrediction && r.Float64() > want[top],
			by == selectedBySureness && top != view:
			continue
		}
		p.Counts[top*k+view]++
		p.Predicted[top]++
		p.Distinct++
		p.Squares++
		truth[class] += 1. / n
	}
	p.Expected = func(float64, []float64) float64 { return 1 }
	return p, truth
}

// The evidence must tell members selected by their predictions, or by the sureness of these, from
// members selected by their classes. The shares of the first two kinds must then be near the mean
// posterior, those of the third near the shares under prior shift.
func TestSelectionByPredictionDiffersFromThatByClass(t *testing.T) {
	const rounds = 200
	for _, by := range []selection{selectedByClass, selectedByPrediction, selectedBySureness} {
		var likely float64
		var errors, meanErrors, shiftErrors float64
		for seed := range uint64(rounds) {
			p, truth := drawSelected(rand.New(rand.NewPCG(seed, 3)), by)
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
		t.Logf(
			"selection %d: likelihood of that by class %.2f; mean error %.4f, of the mean %.4f, "+
				"under prior shift %.4f",
			by,
			likely,
			errors,
			meanErrors,
			shiftErrors,
		)
		if right, wrong := min(meanErrors, shiftErrors),
			max(meanErrors, shiftErrors); errors > right+(wrong-right)/3 {
			t.Errorf(
				"selection %d: the error is %.4f, with the right reading %.4f", by, errors, right,
			)
		}
		if byClass := by == selectedByClass; byClass != (likely > .75) || byClass == (likely < .5) {
			t.Errorf("selection %d: taken for one by class with %.2f", by, likely)
		}
	}
}

// A member that counts several times is one witness: a few members must not seem to be many.
func TestOneMemberOftenIsLittleEvidence(t *testing.T) {
	p, _ := drawSelected(rand.New(rand.NewPCG(5, 3)), selectedByPrediction)
	few := func(times float64) (byClass float64) {
		some, k := *p, len(p.Prior)
		some.Predicted, some.Counts = make([]float64, k), make([]float64, k*k)
		for v := range 5 {
			some.Counts[v] += times
			some.Predicted[v/k] += times
		}
		some.Squares = 5 * times * times
		var u histogram
		return byClassOf(u.read(&some, nil).evidence)
	}
	if once, often := few(1), few(40); math.Abs(once-often) > 1e-9 {
		t.Errorf("five members say %v, each forty times %v", once, often)
	}
}
