package audit

import (
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event/eventtest"
)

// After every batch of a random history of joins, leaves, erasures, expiries, new labels and
// new predictions the sums must be those of a recount, and whatever changed was named.
func TestSumsEqualRecount(t *testing.T) {
	for seed := range uint64(120) {
		stream := eventtest.New(seed, eventtest.Config{
			Erase: true, TTL: seed%2 == 0, Withdraw: seed%3 == 0, RollOuts: seed%4 == 0, Audits: true, Vertices: 20,
		})
		store, err := graphstore.New(graphstore.Config{
			Classes: stream.Config.Classes, SwitchAt: 0.5,
			Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
		})
		if err != nil {
			t.Fatal(err)
		}
		sums := New(stream.Config.Classes, store.View())
		audited := 0
		for batch := range 80 {
			before := map[graphstore.Community]tally.Sum{}
			for c, s := range sums.each {
				before[c] = s.weights.sum
			}
			moved := map[graphstore.Community]bool{}
			delta, _ := store.Apply(stream.Next())
			sums.Update(store.View(), delta, func(c graphstore.Community) { moved[c] = true })
			if err := sums.Check(store.View()); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, batch, err)
			}
			for c := range graphstore.Community(store.View().Communities()) {
				var now tally.Sum
				if s := sums.each[c]; s != nil {
					now = s.weights.sum
				}
				if now != before[c] && !moved[c] {
					t.Fatalf("seed %d batch %d: community %d changed and was not named", seed, batch, c)
				}
			}
			audited += len(sums.counted)
		}
		if audited == 0 {
			t.Errorf("seed %d: nobody was ever audited", seed)
		}
		store.Release()
	}
}
