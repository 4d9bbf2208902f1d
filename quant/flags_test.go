package quant_test

import (
	"slices"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// Every situation raises its flag, with its detail, and only then.
func TestFlagsNameTheMistake(t *testing.T) {
	good := syntheticStatistics(3, 300, 300, 1)
	if e := estimate(t, good, quant.Options{Method: quant.Auto}); len(e.Flags) != 0 {
		t.Fatalf("nothing is wrong, yet %v", e.Flags)
	}
	for _, c := range []struct {
		want   string
		method quant.Method
		change func(*stats.Statistics)
	}{
		{quant.FlagNoMembers, quant.Auto, func(s *stats.Statistics) {
			s.Members, s.Profiled = 0,
				0
		}},
		{quant.FlagNoCoverage, quant.Auto, func(s *stats.Statistics) { s.Profiled = 0 }},
		{quant.FlagLowCoverage, quant.PCC, func(s *stats.Statistics) { s.Members *= 2 }},
		{quant.FlagNoLabels, quant.Auto, func(s *stats.Statistics) { *s = *scaled(s, 0, 0) }},
		{quant.FlagUnreachable, quant.SIS, func(s *stats.Statistics) { *s = *scaled(s, 1, 0) }},
		{quant.FlagUnsupported + ":1", quant.SISNACC, func(s *stats.Statistics) { without(s, 1) }},
		{quant.FlagUnsupported + ":1", quant.MLPE, func(s *stats.Statistics) { without(s, 1) }},
		{
			quant.FlagThin + ":0,1,2", quant.NACC,
			func(s *stats.Statistics) { *s = *scaled(s, .1, 1) },
		},
		{
			quant.FlagIllConditioned + ":0~2", quant.PACC,
			func(s *stats.Statistics) { alike(s.Soft, 0, 2) },
		},
		{
			quant.FlagIllConditioned + ":0~2", quant.ML,
			func(s *stats.Statistics) { alike(s.SoftPair, 0, 2) },
		},
		{quant.FlagShift + ":0,1,2", quant.Auto, func(s *stats.Statistics) {
			residuals, masses := stats.NewLabelResiduals(3), make([]float64, 300)
			for i := range masses { // all of class 0, for any prediction
				residuals.Add(0, 1, []float64{.2, .4, .4})
				masses[i] = 1 + float64(i%2)
			}
			s.Posterior.Residuals = residuals.Weigh(masses)
		}},
		{quant.FlagClustered, quant.Auto, func(s *stats.Statistics) { s.Posterior.LabelGate = .4 }},
	} {
		s := scaled(good, 1, 1)
		c.change(s)
		e := estimate(t, s, quant.Options{Method: c.method, Lambda: .3})
		checkSane(t, c.want, e)
		if !slices.Contains(e.Flags, c.want) {
			t.Errorf("%s: flags %v, want %q", c.method, e.Flags, c.want)
		}
		if quant.FlagName(c.want) != quant.FlagNoMembers && hasFlag(e, quant.FlagNoMembers) {
			t.Errorf("%s: flags %v", c.method, e.Flags)
		}
	}
}

// without takes the labels of a class away.
func without(s *stats.Statistics, class int) {
	s.ClassN[class], s.ClassA1[class], s.ClassA2[class] = 0, 0, 0
	for _, c := range []*stats.Cells{s.Soft, s.SoftPair, s.Hard, s.HardPair} {
		for z := range c.Z {
			c.N[z*s.K+class], c.A1[z*s.K+class], c.A2[z*s.K+class] = 0, 0, 0
		}
	}
}

// alike gives two classes the profiles of the first.
func alike(c *stats.Cells, a, b int) {
	k := len(c.N) / c.Z
	for z := range c.Z {
		for _, x := range [][]float64{c.N, c.A1, c.A2} {
			x[z*k+b] = x[z*k+a]
		}
	}
}

// The classifier's confusion in the community is not that of the labels: sis and
// diff must come apart and say so, and must agree where it is.
func TestShiftDisagreementIsFlagged(t *testing.T) {
	flagged := func(swap bool) (n int) {
		for seed := range uint64(20) {
			w := syntheticWorld(2, 400, 400, seed)
			if swap { // members of class one look like class zero to the classifier
				for _, v := range w.communities[0].members {
					if p := w.predictions[v]; p[1] > p[0] && v%3 > 0 {
						p[0], p[1] = p[1], p[0]
					}
				}
				for v, l := range w.labels { // and labels of class zero like class one
					if p := w.predictions[v]; l == 0 && p[0] > p[1] && v%3 == 0 {
						p[0], p[1] = p[1], p[0]
					}
				}
				w.describe()
			}
			a := w.masses(personalised, w.communities[:1])
			if hasFlag(
				estimate(
					t,
					w.statistics(w.communities[0], a[0]),
					quant.Options{Method: quant.SIS, Lambda: .9},
				),
				quant.FlagShift,
			) {
				n++
			}
		}
		return n
	}
	if n := flagged(false); n > 1 {
		t.Errorf("flagged %d of 20 worlds without a shift", n)
	}
	if n := flagged(true); n < 18 {
		t.Errorf("flagged %d of 20 worlds with a shift", n)
	}
}

// Flags are documented once, completely, and their names hold no separator.
func TestEveryFlagIsDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range quant.FlagDocs() {
		if seen[d.Name] || d.Meaning == "" || d.Action == "" || quant.FlagName(d.Name) != d.Name {
			t.Errorf("flag %+v", d)
		}
		seen[d.Name] = true
	}
}

// Every method is parsed by its name, lists keep their order without repeats, and all values out of
// range are refused together.
func TestOptionsAreChecked(t *testing.T) {
	for _, m := range quant.Methods() {
		if got, err := quant.ParseMethods(string(m)); err != nil || len(got) != 1 || got[0] != m {
			t.Errorf("%s: parsed as %v, %v", m, got, err)
		}
		if err := (quant.Options{Method: m}).Validate(); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	if got, err := quant.ParseMethods("sis, NACC,sis"); err != nil ||
		!slices.Equal(got, []quant.Method{quant.SIS, quant.NACC}) {
		t.Errorf("parsed %v, %v", got, err)
	}
	for _, bad := range []string{"", "nope", "sis,,nacc", "enq"} {
		if got, err := quant.ParseMethods(bad); err == nil {
			t.Errorf("%q: parsed as %v", bad, got)
		}
	}
	err := quant.Options{Method: "x", Preset: "y", Lambda: 2, Confidence: 1}.Validate()
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 4 {
		t.Errorf("four mistakes gave %v", err)
	}
}
