package quant_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

const (
	// shareTolerance is how far a share may be from the reference.
	shareTolerance = 2e-4
	// accuracyTolerance is by how much the mean error of ml may exceed the reference's.
	accuracyTolerance = 5e-4
)

// sharedDir returns the directory of the reference cases: next to GQLSTREAM_DATA, or in ../shared
// from the project's root. Empty when this checkout has neither.
func sharedDir(t *testing.T) string {
	dir := filepath.Join("..", "..", "shared")
	data := os.Getenv("GQLSTREAM_DATA")
	if data != "" {
		dir = filepath.Dir(filepath.Clean(data))
	}
	_, err := os.Stat(filepath.Join(dir, "cases"))
	if err != nil && data != "" {
		t.Fatalf("GQLSTREAM_DATA is %s, but there are no reference cases beside it: %v", data, err)
	}
	if err != nil {
		return ""
	}
	return dir
}

// variants says which method, preset, lambda and kernel each key of expected.json is.
var variants = []struct {
	key    string
	method quant.Method
	preset stats.Preset
	lambda float64
	kernel diffusion
}{
	{"CC", quant.CC, stats.Density, .9, personalised},
	{"PCC", quant.PCC, stats.Density, .9, personalised},
	{"ACC", quant.ACC, stats.Density, .9, personalised},
	{"PACC", quant.PACC, stats.Density, .9, personalised},
	{"NACC", quant.NACC, stats.Density, .9, personalised},
	{"NACC-hard", "nacc-hard", stats.Density, .9, personalised},
	{"density.9", quant.SIS, stats.Density, .9, personalised},
	{"density.9+NACC", quant.SISNACC, stats.Density, .9, personalised},
	{"density.ess3+NACC", quant.SISNACC, stats.Density, stats.LambdaAuto, personalised},
	{"sis-nacc-ml.ess3", "sis-nacc-ml", stats.Density, stats.LambdaAuto, personalised},
	{"diff", quant.Diff, stats.Density, .9, personalised},
	{"ml", quant.ML, stats.Density, .9, personalised},
	{"SIS", quant.SIS, stats.Reference, .9, truncated},
	{"SIS+NACC", quant.SISNACC, stats.Reference, .9, truncated},
	{"PAPER", quant.SIS, stats.Paper, .9, lazy},
	{"PAPER+NACC", quant.SISNACC, stats.Paper, .9, lazy},
}

// Every estimate must agree with references that dense linear algebra and SciPy computed elsewhere,
// and ml must be as accurate on average. Results of auto are compared in the tests of its
// posteriors. Statistics come from world_test.go.
func TestReferenceCases(t *testing.T) {
	dir := sharedDir(t)
	if dir == "" {
		t.Log(
			"this checkout has no ../shared: only the synthetic case of " +
				"TestEstimatesMatchDefinitions was compared",
		)
		return
	}
	for _, name := range []string{"coraml", "citeseer", "musae_twitch", "icwsm_political"} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(dir, "cases", name, "expected.json"))
			if err != nil {
				t.Fatalf("reference data: %v", err)
			}
			c := newComparison(t)
			if err := json.Unmarshal(raw, &c); err != nil {
				t.Fatalf("reference data %s: %v", name, err)
			}
			w := readWorld(
				t, filepath.Join(dir, "cases", name), filepath.Join(dir, "data", name), c.Classes,
			)
			if len(w.communities) > 10 {
				w.communities = every(w.communities, stride)
			}
			c.run(w)
			c.report()
		})
	}
}

// every keeps one in n of a list.
func every[T any](list []T, n int) []T {
	var kept []T
	for i := 0; i < len(list); i += n {
		kept = append(kept, list[i])
	}
	return kept
}

// comparison holds a case's references and gathers how far we are.
type comparison struct {
	Classes  int
	Expected map[string]map[string][]float64

	t        *testing.T
	solver   quant.Solver
	worst    map[string]distance
	accuracy map[string]*tally
}

type distance struct {
	largest   float64
	community string
}

// tally sums errors and interval hits of one method and kind of shift.
type tally struct{ ours, reference, hits, classes, communities float64 }

func newComparison(t *testing.T) *comparison {
	return &comparison{t: t, worst: map[string]distance{}, accuracy: map[string]*tally{}}
}

// run estimates every community in every way that has a reference.
func (c *comparison) run(w *world) {
	stats := map[diffusion][]*stats.Statistics{}
	for _, v := range variants {
		if stats[v.kernel] != nil || !c.has(v.key) {
			continue
		}
		for i, a := range w.masses(v.kernel, w.communities) {
			stats[v.kernel] = append(stats[v.kernel], w.statistics(w.communities[i], a))
		}
	}
	for i, community := range w.communities {
		for _, v := range variants {
			if want := c.Expected[community.name][v.key]; want != nil {
				e := c.estimate(
					stats[v.kernel][i],
					quant.Options{Method: v.method, Preset: v.preset, Lambda: v.lambda},
				)
				c.compare(community.name, v.key, e, want)
			}
		}
		c.average(community.name, stats[personalised][i])
	}
}

// has reports whether the case has references for a key.
func (c *comparison) has(key string) bool {
	for _, e := range c.Expected {
		return e[key] != nil
	}
	return false
}

func (c *comparison) estimate(s *stats.Statistics, o quant.Options) quant.Estimate {
	var e quant.Estimate
	if err := c.solver.Estimate(&e, s, o); err != nil {
		c.t.Fatal(err)
	}
	return e
}

// compare notes the distance of the shares and of the other values with a reference.
func (c *comparison) compare(community, key string, e quant.Estimate, want []float64) {
	c.note(community, key, e.Prevalence, want)
	switch key {
	case "density.9":
		if n := c.Expected[community]["neff.density.9"]; n != nil {
			c.note(community, "neff.density.9", e.NEff, n)
		}
	case "ml":
		c.note(community, "lambda.ml", []float64{e.Lambda}, c.Expected[community]["lambda.ml"])
	}
}

func (c *comparison) note(community, key string, got, want []float64) {
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d <= c.worst[key].largest) {
			c.worst[key] = distance{d, community}
		}
	}
}

// average adds a community to the mean error and the coverage of ml.
func (c *comparison) average(community string, s *stats.Statistics) {
	expected := c.Expected[community]
	shift, _, found := strings.Cut(community, "-")
	if !found {
		shift = "all"
	}
	for _, m := range []quant.Method{quant.ML} {
		e := c.estimate(s, quant.Options{Method: m})
		key := fmt.Sprintf("%s %s", m, shift)
		x := c.accuracy[key]
		if x == nil {
			x = &tally{}
			c.accuracy[key] = x
		}
		x.ours += absoluteError(e.Prevalence, expected["truth"])
		x.reference += absoluteError(expected[string(m)], expected["truth"])
		x.communities++
		for k, share := range expected["truth"] {
			x.classes++
			if e.Low[k]-1e-9 <= share && share <= e.High[k]+1e-9 {
				x.hits++
			}
		}
	}
}

// report fails the test where a distance or a mean is too large.
func (c *comparison) report() {
	for _, key := range sorted(c.worst) {
		d := c.worst[key]
		c.t.Logf("%-20s worst %.1e in %s", key, d.largest, d.community)
		if !(d.largest <= shareTolerance) {
			c.t.Errorf("%s: %s is off by %g", d.community, key, d.largest)
		}
	}
	for _, key := range sorted(c.accuracy) {
		x := c.accuracy[key]
		ours, reference := x.ours/x.communities, x.reference/x.communities
		c.t.Logf(
			"%-20s mean error %.4f (reference %.4f), 90 %% intervals hold %.3f", key, ours,
			reference, x.hits/x.classes,
		)
		if stride > 1 {
			continue // means over a few communities are no measure
		}
		if !(ours <= reference+accuracyTolerance) {
			c.t.Errorf("%s: mean error %.5f, reference %.5f", key, ours, reference)
		}
	}
}

// sorted returns the keys of m in order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// absoluteError is the mean over the classes of |estimate - truth|.
func absoluteError(estimate, truth []float64) (mean float64) {
	for i, x := range truth {
		mean += math.Abs(estimate[i]-x) / float64(len(truth))
	}
	return mean
}
