package incremental

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/lab/campaign"
)

// After a leap of the broker's clock and a clock event, nothing that the core holds is later than
// log time, records have that time, and a core that is restored from any checkpoint before or after
// the event publishes the same bits.
func TestAClockEventIsFollowed(t *testing.T) {
	for seed := range uint64(campaign.Size(t, "GQLSTREAM_RESTARTS", 2)) {
		r := rand.New(rand.NewPCG(seed, 96))
		network, config := anyNetwork(t, seed, r)
		day := event.Time(24 * time.Hour)
		cores := []*Core{newCore(t, config)}
		last := event.Time(0)
		for i := range 60 {
			batch := network.Next()
			right := batch.Time
			switch {
			case i >= 20 && i < 30: // the clock is wrong, then log time stands
				leap(batch, right+day)
				batch.EndsBy = 0
				last = batch.Time
			case i >= 30 && i < 40:
				leap(batch, last)
				batch.EndsBy = right
			}
			batch.Checkpoint = slices.Contains([]int{15, 25, 35, 45}, i)
			if i == 40 {
				*batch = event.Batch{
					First: batch.First, Last: batch.Last, Time: right, Emit: true, EmitAll: true,
					Controls: []event.Control{
						{Op: event.SetClock, Time: right, Position: batch.Last},
					},
				}
			}
			want := cores[0].Step(batch).Estimates
			if err := checkCore(cores[0]); err != nil {
				t.Fatalf("seed %d, batch %d: %v", seed, i, err)
			}
			for j, core := range cores[1:] {
				if got := core.Step(batch).Estimates; len(got) != len(want) {
					t.Fatalf(
						"seed %d, batch %d: core %d publishes %d records, want %d", seed, i, j,
						len(got), len(want),
					)
				} else {
					sameEstimates(t, "a restored core", got, want)
				}
			}
			if i >= 40 {
				noneLater(t, cores[0], right)
				for _, e := range want {
					if e.Time != right.String() {
						t.Fatalf(
							"seed %d, batch %d: a record of %s, log time is %v", seed, i, e.Time,
							right,
						)
					}
				}
			}
			if i == 40 && cores[0].View().Communities() > 0 && len(want) == 0 {
				t.Fatalf("seed %d: the clock event publishes nothing", seed)
			}
			if batch.Checkpoint {
				state := saved(t, seed, cores[0])
				for _, core := range cores[1:] {
					sameState(t, seed, state, saved(t, seed, core))
				}
				cores = append(cores, restore(t, seed, state, config))
			}
		}
		for _, core := range cores {
			core.Close()
		}
	}
}

// leap gives a batch and the events without an older time the time of the log.
func leap(b *event.Batch, at event.Time) {
	for k := range event.Kind(event.Kinds) {
		for i := range b.Count(k) {
			if _, own := b.Stamp(k, i); own == b.Time {
				_, _, stamp := b.At(k, i)
				*stamp = at
			}
		}
	}
	b.Time = at
}

func noneLater(t *testing.T, c *Core, now event.Time) {
	t.Helper()
	view := c.View()
	for v := range graphstore.Vertex(view.Vertices()) {
		if e := view.Evidence(v); e.Time > now || e.Changed > now || view.LabelTime(v) > now {
			t.Fatalf(
				"vertex %d: evidence of %v, changed %v, label of %v; log time is %v", v, e.Time,
				e.Changed, view.LabelTime(v), now,
			)
		}
	}
	for _, row := range c.pairs.Rows() {
		if row.Time > now {
			t.Fatalf("the pair of vertex %d is of %v, log time is %v", row.Vertex, row.Time, now)
		}
	}
}
