package tally

import (
	"math"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant/stats"
)

// After every batch of a random history the sums over audited members must equal a recount,
// and every community with changed sums must be marked as touched. The history has joins,
// leaves, erasures, expiries, new labels and new predictions.
func TestAuditSumsEqualRecount(t *testing.T) {
	for seed := range uint64(120) {
		stream := eventtest.New(seed, eventtest.Config{
			Erase: true, TTL: seed%2 == 0, Withdraw: seed%3 == 0, RollOuts: seed%4 == 0,
			Audits: true, Vertices: 20,
		})
		k := stream.Config.Classes
		store, err := graphstore.New(graphstore.Config{
			Classes: k, SwitchAt: 0.5,
			Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
		})
		if err != nil {
			t.Fatal(err)
		}
		view, sums, keep := store.View(), neighborhood.New(k, false), Families{
			ClassMasses: true,
			Means:       true,
		}
		pairs := pairs.New(k, false)
		tallies := New(k, keep, view, sums, pairs)
		audited := uint64(0)
		for batch := range 80 {
			before := make([]Sum, view.Communities()) // of the weights
			for id := range tallies.each {
				if list := tallies.each[id].audit; list != nil {
					before[id] = list[1]
				}
				tallies.SetProgress(CommunityID(id), Progress{})
			}
			delta, _ := store.Apply(stream.Next())
			votes := sums.Update(view, delta)
			pairs.Update(view, delta, sums)
			tallies.Begin(view)
			tallies.Update(view, delta, sums, votes)
			twin := New(k, keep, view, sums, pairs)
			for id, c := range tallies.each {
				audited += c.audited
				if anew := twin.each[id]; c.audited != anew.audited ||
					c.audited > 0 && !slices.Equal(c.audit, anew.audit) {
					t.Fatalf(
						"seed %d batch %d: community %d has %v, a recount gives %v", seed, batch,
						id, c.audit, anew.audit,
					)
				}
				if id < len(before) && c.audit != nil && c.audit[1] != before[id] &&
					tallies.status[id] != touched {
					t.Fatalf(
						"seed %d batch %d: community %d changed and has not moved", seed, batch, id,
					)
				}
			}
			equalsPlainSums(t, tallies, view)
		}
		if audited == 0 {
			t.Errorf("seed %d: nobody was ever audited", seed)
		}
		store.Release()
	}
}

// equalsPlainSums compares the sums with those of quant, in floating point.
func equalsPlainSums(t *testing.T, tallies *Tallies, view graphstore.View) {
	t.Helper()
	k := tallies.classes
	for id := range CommunityID(view.Communities()) {
		want := stats.NewAudit(k)
		view.ForMembers(id, func(v Vertex, multiplicity uint32) {
			a := view.Audit(v)
			if a.Class == event.NoClass {
				return
			}
			p, y, yp := make([]float64, k), make([]float64, k), make([]float64, k)
			for i, unit := range view.Prediction(v) {
				p[i] = float64(unit) / event.One
			}
			y[a.Class] = 1
			yp[a.Class] = p[a.Class]
			want.Labels++
			want.Expect(y, p, yp, float64(multiplicity), float64(a.Pi)/event.One, 1)
		})
		got := tallies.each[id].audits()
		if got == nil {
			got = stats.NewAudit(k)
		}
		list := func(a *stats.Audit) []float64 {
			return slices.Concat(
				[]float64{float64(a.Labels), a.SquaredW, a.Weights.Sum, a.Noise.Sum}, a.Weights.Y,
				a.Weights.P, a.Noise.Y, a.Noise.P, a.NoiseYP, a.NoisePP,
			)
		}
		for i, x := range list(got) {
			if y := list(want)[i]; math.Abs(x-y) > 1e-6*(1+math.Abs(y)) {
				t.Fatalf("community %d: sum %d is %v, want %v", id, i, x, y)
			}
		}
	}
}
