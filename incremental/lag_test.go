//go:build !race

package incremental

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
)

// A change two steps away is read with the next computation of a vertex, or at the latest
// after a minute. Until then 99 in 100 shares of a lively network must be within a fifth of
// a standard error of those of a core that computes everything at each emission.
func TestSharesLagLittleBehindTwoSteps(t *testing.T) {
	for _, classes := range []int{2, 5, 10} {
		s := simulate.DefaultConfig()
		s.Seed, s.Classes, s.Vertices, s.Communities = 7, classes, 3000, 8
		s.Duration, s.JumpEvery, s.LabelShare = 50*time.Second, 20*time.Second, .05
		s.LabelRate, s.LabelRenew, s.PostRate = 0, 1, s.Activity/4
		network, err := simulate.New(s)
		if err != nil {
			t.Fatal(err)
		}
		core, prompt := newCore(t, Config{Classes: classes}), newCore(t, Config{Classes: classes})
		var apart []float64
		second := event.Time(0)
		for {
			var b event.Batch
			if err := network.Next(context.Background(), &b); err != nil {
				break
			}
			b.Emit = b.Time/1e9 > second
			second = b.Time / 1e9
			estimates := core.Step(&b).Estimates
			all := b
			all.EmitAll = b.Emit
			for i, e := range prompt.Step(&all).Estimates {
				for k, q := range e.Prevalence {
					if e.SE[k] > 0 {
						apart = append(apart, math.Abs(estimates[i].Prevalence[k]-q)/e.SE[k])
					}
				}
			}
		}
		slices.Sort(apart)
		n := len(apart)
		t.Logf("%d classes: %d shares, median %.4f, p99 %.4f, max %.4f",
			classes, n, apart[n/2], apart[n*99/100], apart[n-1])
		if p99 := apart[n*99/100]; n < 800 || p99 > .2 {
			t.Errorf(
				"%d classes: one share in a hundred of %d is off by %.3f standard errors", classes,
				n, p99,
			)
		}
		core.Close()
		prompt.Close()
	}
}
