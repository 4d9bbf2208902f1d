package alerts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/quant"
)

// A community that is published only when its estimate has moved must have the alerts of
// one that is published always: a missing record is no missing data, and messages that only
// move the log's time move everything that depends on time.
func TestOmittedRecordsAreNoNews(t *testing.T) {
	change := rule(
		t,
		"change > 0.1",
		func(r *Rule) { r.Name, r.Over, r.Every = "change", time.Minute, 10*time.Second },
	)
	sum := rule(t, "cusum", func(r *Rule) { r.Name, r.Every = "sum", 20*time.Second })
	held := rule(
		t,
		"point > 0.4",
		func(r *Rule) { r.Name, r.For, r.NoData = "held", 90*time.Second, noDataAlert },
	)
	share := func(at int64) float64 {
		return []float64{
			0.2, 0.2, 0.35, 0.45, 0.45, 0.45, 0.3,
			0.2,
		}[at/100%8]
	}
	follow := func(published func(at int64) bool) (all []string) {
		e, err := New(config(change, sum, held))
		if err != nil {
			t.Fatal(err)
		}
		before, last := -1.0, map[string]quant.Estimate{}
		for at := range int64(1600) {
			var list []quant.Estimate
			if p := share(at); published(at) || p != before {
				moved := 0.0
				if p != before && before >= 0 {
					moved = 0.01
				}
				list, before = one(record("x", p, 0.02, moved)), p
				moves(last, list)
			}
			for _, x := range e.Evaluate(Moment{Position: uint64(at + 1), Time: start + at*second},
				list) {
				all = append(all, fmt.Sprint(x.Position, x.Rule, x.Class, x.State, x.Reason))
			}
		}
		return all
	}
	always := follow(func(int64) bool { return true })
	gated := follow(func(int64) bool { return false })
	if !slices.Equal(always, gated) || len(always) < 6 {
		t.Errorf("published always:\n%q\nonly when moved:\n%q", always, gated)
	}
	e, err := New(
		config(
			held,
			rule(
				t,
				"point > 0.9",
				func(r *Rule) { r.NoData, r.NoDataAfter = noDataAlert, time.Minute },
			),
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	fired := 0
	for at := range int64(200) {
		var list []quant.Estimate
		if at == 0 {
			list = one(record("x", 0.1, 0.02, 0))
		}
		for _, x := range e.Evaluate(Moment{Position: uint64(at + 1), Time: start + at*second},
			list) {
			if fired++; x.Rule != "r" || at != 60 {
				t.Errorf("at %d: %s, %s", at, x.Rule, x.Reason)
			}
		}
	}
	if fired == 0 {
		t.Error("no_data_after does not count from the newest record")
	}
}

// A community that is published when its share has moved by a tenth of its standard error
// must have the alerts of one that is published always: as many of each rule, in the same
// order and next to no later.
func TestSmallOmittedChangesCostNoAlert(t *testing.T) {
	const (
		se, noise = 0.02, 0.0004 // the noise of one emission
		threshold = 0.1 * se
		delayMax  = 30 // emissions
	)
	rules := func() Config {
		return config(
			rule(
				t,
				"point > 0.4",
				func(r *Rule) { r.Name, r.Recover = "level", new(float64); *r.Recover = 0.37 },
			),
			rule(
				t,
				"change > 0.1",
				func(r *Rule) { r.Name, r.Over, r.Every = "change", time.Minute, 10*time.Second },
			),
			rule(t, "cusum > 8", func(r *Rule) { r.Name, r.Every = "sum", 20*time.Second }),
		)
	}
	type transition struct {
		what string
		at   uint64
	}
	follow := func(seed uint64, least float64) (all []transition, published int) {
		e, err := New(rules())
		if err != nil {
			t.Fatal(err)
		}
		draw := rand.New(rand.NewPCG(seed, 5))
		share, last, since := 0.25, -1.0, 0
		before := map[string]quant.Estimate{}
		for at := range int64(3000) {
			share += noise * draw.NormFloat64()
			switch at {
			case 700, 1400:
				share += 0.12 // a jump
			case 2100:
				share -= 0.2
			}
			since++
			var list []quant.Estimate
			if math.Abs(share-last) > least {
				list = one(record("x", share, se, noise*math.Sqrt(float64(since))))
				moves(before, list)
				last, since = share, 0
				published++
			}
			for _, x := range e.Evaluate(Moment{Position: uint64(at + 1), Time: start + at*second},
				list) {
				all = append(all, transition{x.Rule + " " + string(x.State), x.Position})
			}
		}
		return all, published
	}
	for seed := range uint64(20) {
		always, _ := follow(seed, -1)
		gated, published := follow(seed, threshold)
		if published > 1500 {
			t.Fatalf("seed %d: %d of 3000 records were published", seed, published)
		}
		for _, name := range []string{"level", "change", "sum"} {
			of := func(list []transition) (own []transition) {
				for _, x := range list {
					if strings.HasPrefix(x.what, name) {
						own = append(own, x)
					}
				}
				return own
			}
			want, got := of(always), of(gated)
			if name == "sum" { // how long sums take to empty again is left to the noise
				want, got = want[:min(1, len(want))], got[:min(1, len(got))]
			}
			if len(want) == 0 || len(want) != len(got) {
				t.Errorf("seed %d: %s: always %v, gated %v", seed, name, want, got)
				continue
			}
			for i := range want {
				if want[i].what != got[i].what || got[i].at > want[i].at+delayMax {
					t.Errorf("seed %d: %v, gated %v", seed, want[i], got[i])
				}
			}
		}
	}
}
