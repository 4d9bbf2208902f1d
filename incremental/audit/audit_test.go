package audit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
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
				before[c] = s.of[1]
			}
			moved := map[graphstore.Community]bool{}
			delta, _ := store.Apply(stream.Next())
			sums.Update(store.View(), delta, func(c graphstore.Community) { moved[c] = true })
			if err := sums.check(store.View()); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, batch, err)
			}
			for c := range graphstore.Community(store.View().Communities()) {
				var now tally.Sum
				if s := sums.each[c]; s != nil {
					now = s.of[1]
				}
				if now != before[c] && !moved[c] {
					t.Fatalf("seed %d batch %d: community %d changed and was not named", seed, batch, c)
				}
			}
			audited += len(sums.counted)
			equalsPlainSums(t, sums, store.View())
		}
		if audited == 0 {
			t.Errorf("seed %d: nobody was ever audited", seed)
		}
		store.Release()
	}
}

// equalsPlainSums compares the sums with those of quant, in floating point.
func equalsPlainSums(t *testing.T, sums *Tallies, view graphstore.View) {
	t.Helper()
	k := sums.classes
	for c := range graphstore.Community(view.Communities()) {
		want := quant.NewAudit(k)
		for _, v := range view.Audits() {
			p := make([]float64, k)
			for i, unit := range view.Prediction(v) {
				p[i] = float64(unit) / event.One
			}
			for _, m := range slices.Concat(everyoneOf(view), view.MemberOf(v)) {
				if a := view.Audit(v); m.Community == c {
					y, yp := make([]float64, k), make([]float64, k*k)
					y[a.Class] = 1
					copy(yp[int(a.Class)*k:], p)
					want.Labels++
					want.Expect(y, p, yp, float64(m.Multiplicity), float64(a.Pi)/event.One, 1)
				}
			}
		}
		got := sums.Read(c)
		if got == nil {
			got = quant.NewAudit(k)
		}
		list := func(a *quant.Audit) []float64 {
			return slices.Concat([]float64{float64(a.Labels), a.SquaredW, a.Weights.Sum, a.Noise.Sum},
				a.Weights.Y, a.Weights.P, a.Noise.Y, a.Noise.P, a.NoiseYP, a.NoisePP)
		}
		for i, x := range list(got) {
			if y := list(want)[i]; math.Abs(x-y) > 1e-6*(1+math.Abs(y)) {
				t.Fatalf("community %d: sum %d is %v, want %v", c, i, x, y)
			}
		}
	}
}

// check counts everything from nothing and names the first community whose sums are not
// equal bit for bit.
func (t *Tallies) check(view graphstore.View) error {
	twin := New(t.classes, view)
	for _, c := range slices.Sorted(maps.Keys(twin.each)) {
		if t.each[c] == nil || !t.each[c].equal(twin.each[c]) {
			return fmt.Errorf("audit: community %s has %+v, a recount gives %+v", view.CommunityName(c), t.each[c], twin.each[c])
		}
	}
	if len(t.each) != len(twin.each) || len(t.counted) != len(twin.counted) {
		return fmt.Errorf("audit: %d communities and %d vertices, a recount gives %d and %d",
			len(t.each), len(t.counted), len(twin.each), len(twin.counted))
	}
	return nil
}

func (s *sums) equal(x *sums) bool { return s.labels == x.labels && slices.Equal(s.of, x.of) }
