package evaluate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every sample must part the labelled vertices, the same way for the same seed, and
// be skewed the way that its name says.
func TestLabelSamples(t *testing.T) {
	w := &world{seed: 7, n: 1200, k: 3, islands: 40}
	config := w.config()
	data := w.data(t, config)
	const n = 150
	degrees, inside := map[string]float64{}, map[string]int{}
	for _, name := range labelSamples {
		drawn, others := data.sample(name, n, rand.New(rand.NewPCG(1, 2)))
		again, _ := data.sample(name, n, rand.New(rand.NewPCG(1, 2)))
		if !slices.Equal(drawn, again) {
			t.Errorf("%s: drawn %v, then %v", name, drawn, again)
		}
		all := slices.Sorted(slices.Values(slices.Concat(drawn, others)))
		if len(drawn) != n || !slices.Equal(all, data.labelled) {
			t.Errorf("%s: %d drawn, %d in all, want %d of %d", name, len(drawn), len(all), n, len(data.labelled))
		}
		for _, v := range drawn {
			degrees[name] += data.view.Degree(v)
			for _, u := range data.view.Neighbors(v) {
				if slices.Contains(drawn, u) {
					inside[name]++
				}
			}
		}
	}
	if degrees[degreeLabels] < 1.1*degrees[uniformLabels] {
		t.Errorf("degrees sum to %v", degrees)
	}
	if inside[bfsLabels] < 2*inside[uniformLabels] || inside[rwLabels] < 2*inside[uniformLabels] {
		t.Errorf("edges within the sample: %v", inside)
	}
	config.Labels = "snowball"
	if err := config.Validate(); err == nil {
		t.Error("a sample that there is not")
	}
}
