//go:build data

package evaluate

import (
	"context"
	"math"
	"testing"

	"gqlstream/incremental"
	"gqlstream/quant"
)

// The 90 % interval of a difference must hold the true difference in at least 87 % of the pairs
// of communities, and be no wider than that of independent errors. That it holds more, as the
// intervals of auto themselves do, is in docs/notes/2026-11-22-audit-labels.md.
func TestIntervalsOfDifferencesHoldTheTruth(t *testing.T) {
	for _, name := range []string{"coraml", "icwsm_political"} {
		d := sharedGraph(t, name)
		config := Config{
			Core:      incremental.Config{Classes: d.classes, Estimates: []quant.Options{{Method: quant.Auto}}},
			Protocols: []string{pps, cov}, PerClass: 28 / d.classes, Size: 400, Seed: 3,
		}.WithDefaults()
		bags, calibration, err := d.draw(config, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.estimate(context.Background(), config, config.runs(), bags, calibration, func(int) {}); err != nil {
			t.Fatal(err)
		}
		held, all, width, apart := 0.0, 0.0, 0.0, 0.0
		for i, a := range bags {
			for _, b := range bags[:i] {
				e, err := quant.Difference(&a.estimates[0], &b.estimates[0])
				if err != nil {
					t.Fatal(err)
				}
				for k, x := range e.Prevalence {
					truth := a.truth[k] - b.truth[k]
					if math.Abs(a.estimates[0].Prevalence[k]-b.estimates[0].Prevalence[k]-x) > 1e-12 {
						t.Fatalf("the difference is %v", x)
					}
					if all++; e.Low[k] <= truth && truth <= e.High[k] {
						held++
					}
					width += e.SE[k]
					apart += math.Hypot(a.estimates[0].SE[k], b.estimates[0].SE[k])
				}
			}
		}
		t.Logf("%s: %.1f %% of %v differences are held; %.4f of the width of independent errors", name, 100*held/all, all, width/apart)
		if held/all < 0.87 || width > apart {
			t.Errorf("%s: %.1f %% held, %.4f of the width", name, 100*held/all, width/apart)
		}
	}
}
