package quant

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/quant/stats"
)

// TestMethodsThatRestOnLabelSharesCorrectTheirDraw holds mlpe and diff against the truth where one
// class answers four times as often as the other: without the correction both are far off, with it
// they are right, and their standard errors grow by that of the correction.
func TestMethodsThatRestOnLabelSharesCorrectTheirDraw(t *testing.T) {
	const members, truth = 20_000, 0.4
	r := rand.New(rand.NewPCG(3, 5))
	predict := func(class int) float64 { // of class 0; the classifier errs towards class 1
		return 1 / (1 + math.Exp(-(1.2*float64(1-2*class) - 0.6 + r.NormFloat64())))
	}
	s := &stats.Statistics{
		K: 2, Members: members, Profiled: members, ClassN: []float64{320, 120},
		ClassA1: make([]float64, 2), ClassA2: make([]float64, 2),
		Soft: &stats.Cells{
			Z: 2, P: make([]float64, 2), N: make([]float64, 4),
			A1: make([]float64, 4), A2: make([]float64, 4),
		},
	}
	for v := range members {
		class := 0
		if float64(v) >= truth*members {
			class = 1
		}
		p := predict(class)
		s.Soft.P[0] += p / members
		s.Soft.P[1] += (1 - p) / members
	}
	for class, n := range s.ClassN {
		for range int(n) {
			p := predict(class)
			s.Soft.N[class] += p
			s.Soft.N[2+class] += 1 - p
		}
	}
	corrected := *s
	prior := s.LabelShares()
	corrected.Posterior = &stats.Posterior{
		Atypical: 9, Prior: []float64{truth, 1 - truth},
		LabelWeights: []float64{truth / prior[0], (1 - truth) / prior[1]},
		PriorNoise:   []float64{0.0004, -0.0004, -0.0004, 0.0004},
	}
	for _, method := range []Method{MLPE, Diff} {
		plain, weighed := Estimate{}, Estimate{}
		var w Solver
		if err := w.Estimate(&plain, s, Options{Method: method}); err != nil {
			t.Fatal(err)
		}
		if err := w.Estimate(&weighed, &corrected, Options{Method: method}); err != nil {
			t.Fatal(err)
		}
		before, after := plain.Prevalence[0]-truth, weighed.Prevalence[0]-truth
		if math.Abs(before) < 0.1 || math.Abs(after) > 0.03 {
			t.Errorf("%s is off by %.3f, corrected by %.3f; want more than 0.1 and less than 0.03",
				method, before, after)
		}
		if !(weighed.SE[0] > plain.SE[0]) || weighed.Low[0] > truth || weighed.High[0] < truth {
			t.Errorf("%s has se %.4f, [%.3f, %.3f] for %v; uncorrected se %.4f", method,
				weighed.SE[0], weighed.Low[0], weighed.High[0], truth, plain.SE[0])
		}
		if slices.Contains(plain.Flags, FlagAtypical) ||
			!slices.Contains(weighed.Flags, FlagAtypical) {
			t.Errorf("%s has flags %v, uncorrected %v", method, weighed.Flags, plain.Flags)
		}
	}
}
