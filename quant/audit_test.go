package quant_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// addAudit counts a member with its class, its prediction, its multiplicity and the probability
// that it was drawn with.
func addAudit(a *stats.Audit, class int, p []float64, multiplicity, pi float64) {
	y, yp := make([]float64, len(p)), make([]float64, len(p))
	y[class], yp[class] = 1, p[class]
	a.Labels++
	a.Expect(y, p, yp, multiplicity, pi, 1)
}

// auditOf returns sums of n audit labels that are typical of the members of s.
func auditOf(s *stats.Statistics, n int) *stats.Audit {
	r := rand.New(rand.NewPCG(uint64(n), 4))
	a := stats.NewAudit(s.K)
	for range n {
		p := make([]float64, s.K)
		rest := 1.0
		for i := range p[1:] {
			p[i] = rest * r.Float64()
			rest -= p[i]
		}
		p[s.K-1] = rest
		addAudit(a, r.IntN(s.K), p, 1, float64(n)/(s.Members-s.Labelled))
	}
	return a
}

// population is members of known classes, with predictions that are wrong in a way that no
// calibration elsewhere would show.
type population struct {
	class []int
	p     [][]float64
	truth []float64
}

func newPopulation(k, n int, r *rand.Rand) population {
	u := population{truth: make([]float64, k)}
	for range n {
		class := min(r.IntN(k), r.IntN(k))
		p := make([]float64, k)
		for i := range p {
			p[i] = r.Float64()
		}
		p[(class+1)%k] += 1
		sum := 0.0
		for _, x := range p {
			sum += x
		}
		for i := range p {
			p[i] /= sum
		}
		u.class, u.p = append(u.class, class), append(u.p, p)
		u.truth[class] += 1 / float64(n)
	}
	return u
}

// statistics are those of the members; some were drawn with the probability pi(i).
func (u *population) statistics(drawn func(int) bool, pi func(int) float64) *stats.Statistics {
	k, n := len(u.truth), float64(len(u.class))
	zeros := make([]float64, k*k)
	s := &stats.Statistics{
		K: k, Members: n, Profiled: n, Anchored: zeros[:k], ClassN: zeros[:k], ClassA1: zeros[:k],
		ClassA2: zeros[:k],
		Soft: &stats.Cells{
			Z:  k,
			P:  make([]float64, k),
			N:  zeros,
			A1: zeros,
			A2: zeros,
		}, Audit: stats.NewAudit(k),
	}
	for i, p := range u.p {
		for j, x := range p {
			s.Soft.P[j] += x / n
		}
		if drawn(i) {
			addAudit(s.Audit, u.class[i], p, 1, pi(i))
		}
	}
	return s
}

// When every member is audited the estimate is the truth, and certain.
func TestAuditOfEveryMemberIsACount(t *testing.T) {
	u := newPopulation(3, 200, rand.New(rand.NewPCG(1, 2)))
	s := u.statistics(func(int) bool { return true }, func(int) float64 { return 1 })
	e := estimate(t, s, quant.Options{Method: quant.Audits})
	for i, q := range e.Prevalence {
		if math.Abs(q-u.truth[i]) > 1e-12 || e.SE[i] > 1e-12 {
			t.Errorf("class %d: %v ± %v, want %v", i, q, e.SE[i], u.truth[i])
		}
	}
}

// The estimate from members drawn with unequal probabilities must have no bias, and its 90 %
// intervals must hold the truth, although the predictions are worse than none.
func TestAuditAssumesNothingOfPredictions(t *testing.T) {
	const trials = 600
	for _, k := range []int{2, 4} {
		held, bias := 0.0, make([]float64, k)
		for trial := range uint64(trials) {
			r := rand.New(rand.NewPCG(trial, uint64(k)))
			u := newPopulation(k, 400, r)
			pi := func(i int) float64 { return 0.08 + 0.25*u.p[i][0] }
			in := make([]bool, len(u.class))
			for i := range in {
				in[i] = r.Float64() < pi(i)
			}
			e := estimate(
				t,
				u.statistics(func(i int) bool { return in[i] }, pi),
				quant.Options{Method: quant.Audits},
			)
			for i, truth := range u.truth {
				bias[i] += (e.Prevalence[i] - truth) / trials
				if e.Low[i] <= truth && truth <= e.High[i] {
					held += 1 / float64(k*trials)
				}
			}
		}
		if held < 0.87 || held > 0.93 {
			t.Errorf("%d classes: %.1f %% of the intervals hold the truth", k, 100*held)
		}
		for i, b := range bias {
			if math.Abs(b) > 0.005 {
				t.Errorf("%d classes: class %d is off by %.4f on average", k, i, b)
			}
		}
	}
}

// If all labels are audit labels there is no posterior: auto returns the estimate of the audit
// labels without flags of its own.
func TestAuditsAloneAnswerForAuto(t *testing.T) {
	u := newPopulation(3, 400, rand.New(rand.NewPCG(3, 4)))
	s := u.statistics(func(i int) bool { return i%4 == 0 }, func(int) float64 { return 0.25 })
	auto, audit := estimate(t, s, quant.Options{Method: quant.Auto}), estimate(
		t,
		s,
		quant.Options{Method: quant.Audits},
	)
	if !slices.Equal(auto.Prevalence, audit.Prevalence) || !slices.Equal(auto.SE, audit.SE) ||
		len(auto.Flags) > 0 {
		t.Errorf(
			"auto says %v ± %v %v, the audits %v ± %v", auto.Prevalence, auto.SE, auto.Flags,
			audit.Prevalence, audit.SE,
		)
	}
}

// A single class has the share one with certainty, for any labels.
func TestOneClassIsCertain(t *testing.T) {
	w := syntheticWorld(1, 40, 50, 3)
	s := w.statistics(w.communities[0], make([]float64, len(w.labels)))
	s.Audit = stats.NewAudit(1)
	for range 50 {
		addAudit(s.Audit, 0, []float64{1}, 1, 1)
	}
	for _, method := range []quant.Method{quant.Auto, quant.Audits} {
		if e := estimate(t, s, quant.Options{Method: method}); e.Prevalence[0] != 1 ||
			e.Low[0] != 1 ||
			e.SE[0] != 0 {
			t.Errorf("%s: %v, from %v, ± %v", method, e.Prevalence, e.Low, e.SE)
		}
	}
}

// Fewer than ten labels, and labels that stand for another set of members, are not used.
func TestAuditNeedsRepresentativeLabels(t *testing.T) {
	u := newPopulation(2, 300, rand.New(rand.NewPCG(5, 2)))
	for _, test := range []struct {
		labels int
		pi     float64
		flag   string
	}{
		{9, 0.03, quant.FlagFewAudits},
		{40, 0.9, quant.FlagFewAudits},
		{40, 0.01, quant.FlagFewAudits},
		{40, 40. / 300, ""},
	} {
		s := u.statistics(
			func(i int) bool { return i < test.labels },
			func(int) float64 { return test.pi },
		)
		e := estimate(t, s, quant.Options{Method: quant.Audits})
		if got := len(e.Flags) > 0 && e.Flags[0] == test.flag; got != (test.flag != "") {
			t.Errorf("%d labels drawn with %v: flags %v", test.labels, test.pi, e.Flags)
		}
	}
}

// Where all of fifty audit labels are of one class, everybody may be, and the interval says so,
// although auto has a little weight left.
func TestAuditLabelsOfOneClassLeaveEverybodyPossible(t *testing.T) {
	s := syntheticStatistics(3, 120, 400, 5)
	s.Audit = stats.NewAudit(3)
	for range 50 {
		addAudit(s.Audit, 2, []float64{.4, .3, .3}, 1, 50/(s.Members-s.Labelled))
	}
	e := estimate(t, s, quant.Options{Method: quant.Auto})
	if !(e.Prevalence[2] < 1) || e.High[2] != 1 || e.Low[0] != 0 {
		t.Errorf("shares %v, low %v, high %v", e.Prevalence, e.Low, e.High)
	}
}

func ExampleDifference() {
	a := quant.Estimate{
		Community:  "berlin",
		Method:     "auto",
		Posterior:  1,
		Confidence: 0.9,
		Prevalence: []float64{0.6, 0.4},
		SE:         []float64{0.05, 0.05},
	}
	b := quant.Estimate{
		Community:  "rome",
		Method:     "auto",
		Posterior:  1,
		Confidence: 0.9,
		Prevalence: []float64{0.5, 0.5},
		SE:         []float64{0.05, 0.05},
	}
	alone, _ := quant.Difference(&a, &b)
	a.Influence, b.Influence = []float64{
		0.04,
		-0.04,
	}, []float64{
		0.04,
		-0.04,
	} // of labels that both rest on
	together, _ := quant.Difference(&a, &b)
	fmt.Printf(
		"%s: %.1f, error %.3f, or %.3f\n", alone.Community, alone.Prevalence[0], alone.SE[0],
		together.SE[0],
	)
	// Output: difference(berlin, rome): 0.1, error 0.071, or 0.042
}
