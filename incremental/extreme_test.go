package incremental

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/lab/campaign"
	"gqlstream/quant"
)

// Whatever the labels (only audits, or one that counts and others too old to count), every
// record of every method must have numbers: shares that sum to one, and intervals around
// them within 0 and 1. GQLSTREAM_EXTREMES sets the number of histories.
func TestRecordsAreNumbersWhateverTheLabels(t *testing.T) {
	methods, err := quant.ParseMethods("all")
	if err != nil {
		t.Fatal(err)
	}
	histories, records, first := campaign.Size(t, "GQLSTREAM_EXTREMES", 48), 0, campaign.Seed(t, 0)
	for seed := first; seed < first+uint64(histories); seed++ {
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: seed%2 == 0, TTL: seed%7 == 0, Withdraw: seed%5 == 0},
		)
		config := Config{
			Classes: stream.Config.Classes, Engine: []string{EnginePrimal, EngineDual}[seed%2],
			HalfLife:    []time.Duration{0, time.Millisecond, time.Second, time.Minute}[seed/2%4],
			Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
		}
		for _, m := range methods {
			config.Estimates = append(config.Estimates, quant.Options{Method: m})
		}
		if config.Engine == EngineDual {
			config = sharing(config)
		}
		core := newCore(t, config)
		for range 12 {
			batch := stream.Next()
			for i := range batch.Labels {
				if l := &batch.Labels[i]; l.Class != event.NoClass &&
					(seed%3 == 0 || seed%3 == 1 && i%2 == 0) {
					l.Role, l.Pi = event.Audit, event.One>>(uint(i)%4)
				}
			}
			batch.Emit = true
			for _, e := range core.Step(batch).Estimates {
				checkNumbers(t, seed, &e)
				records++
			}
		}
		core.Close()
	}
	if records < 100*histories {
		t.Errorf("%d histories gave %d records", histories, records)
	}
}

func checkNumbers(t *testing.T, seed uint64, e *quant.Estimate) {
	t.Helper()
	if _, err := json.Marshal(e); err != nil {
		t.Fatalf("seed %d: %s of %s at %d: %v", seed, e.Method, e.Community, e.Position, err)
	}
	sum := 0.0
	for i, q := range e.Prevalence {
		sum += q
		if !(e.Low[i] >= 0 && e.Low[i] <= q && q <= e.High[i] && e.High[i] <= 1 && e.SE[i] >= 0 &&
			e.SE[i] <= 1) {
			t.Errorf(
				"seed %d: %s of %s at %d: class %d is %v, %v to %v ± %v", seed, e.Method,
				e.Community, e.Position, i, q, e.Low[i], e.High[i], e.SE[i],
			)
		}
	}
	if !e.Suppressed && math.Abs(sum-1) > 1e-9 {
		t.Errorf(
			"seed %d: %s of %s at %d: shares sum to %v", seed, e.Method, e.Community, e.Position,
			sum,
		)
	}
}
