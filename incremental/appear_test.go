package incremental

import (
	"slices"
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Ten thousand communities that appear in one batch must all have an estimate at once, with
// bounds in the place of their variances where counting those would hold the step up: no
// emission may do more of it than emissions have earned, and a few later nothing is owed.
func TestManyCommunitiesAtOnceHoldNothingUp(t *testing.T) {
	const many, emissionsMax = 10_000, 80
	core := newCore(t, Config{Classes: 2, Work: Work{Sketches: 10}})
	defer core.Close()
	core.Step(crowd(1, 8)) // warm from here on
	at := event.Position(2)
	result := core.Step(crowd(at, many))
	if len(result.Estimates) < many-8 {
		t.Fatalf("%d of %d communities have an estimate", len(result.Estimates), many)
	}
	bounded := map[string]bool{}
	for {
		for i := range result.Estimates {
			e := &result.Estimates[i]
			if delete(bounded, e.Community); slices.Contains(e.Flags, quant.FlagVarianceBound) {
				bounded[e.Community] = true
			}
		}
		t.Logf(
			"position %d: %d estimates, %d communities with bounds, credit %.0f", at,
			len(result.Estimates), len(bounded), core.kernels.(*sharedDual).Credit,
		)
		if credit := core.kernels.(*sharedDual).Credit; credit < -50 {
			t.Errorf(
				"position %d: sketches took %.0f more than there was, and a vertex takes less",
				at,
				-credit,
			)
		}
		if at == 2 && len(bounded) == 0 {
			t.Error("all variances were counted in one step, so that nothing is tested")
		}
		if len(bounded) == 0 {
			return
		}
		if at++; at > emissionsMax {
			t.Fatalf(
				"%d communities have bounds for variances after %d emissions",
				len(bounded),
				emissionsMax,
			)
		}
		result = core.Step(crowd(at, many))
	}
}

// The first emission of a core must count no more variances than a run can wait for, however
// many communities it finds, and all of them where nobody waits.
func TestTheFirstEmissionHoldsNothingUp(t *testing.T) {
	const many = 3000
	for _, patient := range []bool{false, true} {
		core := newCore(
			t,
			Config{Classes: 2, Patient: patient, HalfLife: time.Hour, Work: Work{Sketches: 1}},
		)
		bounded := 0
		for _, e := range core.Step(crowd(1, many)).Estimates {
			if slices.Contains(e.Flags, quant.FlagVarianceBound) {
				bounded++
			}
		}
		if (bounded == 0) != patient || bounded >= many {
			t.Errorf(
				"patient %v: %d of %d communities have bounds for variances", patient, bounded,
				many,
			)
		}
		core.Close()
	}
}

// A class that gets its first labels when there were sketches of all others has bounds for
// variances, and says so, until it has one; then its communities are published again, though
// nothing else happens.
func TestAClassWithoutASketchHasBounds(t *testing.T) {
	const many = 30
	core := newCore(t, Config{Classes: 2, Work: Work{Sketches: 1e6}})
	defer core.Close()
	bounded := func(b *event.Batch) (bounded, n int) {
		for _, e := range core.Step(b).Estimates {
			if n++; slices.Contains(e.Flags, quant.FlagVarianceBound) {
				bounded++
			}
		}
		return bounded, n
	}
	first := crowd(1, many)
	first.Labels = slices.DeleteFunc(first.Labels, func(l event.Label) bool { return l.Class == 1 })
	bounded(first)
	at := event.Position(2)
	quiet := func() *event.Batch {
		return &event.Batch{
			First: at, Last: at,
			Time: event.Time(at) * 1e8, Emit: true,
		}
	}
	for ; at < 20; at++ {
		bounded(quiet())
	}
	core.kernels.(*sharedDual).Credit = -1e9              // none can be made at once
	if got, n := bounded(crowd(at, many)); got != n-n/5 { // of the others all members have labels
		t.Errorf(
			"%d of %d communities say that there are bounds for the variances of a new class",
			got,
			n,
		)
	}
	core.kernels.(*sharedDual).Credit = 0
	published := 0
	for at++; at < 40; at++ {
		got, n := bounded(quiet())
		if published += n; n > 0 && got > 0 {
			t.Errorf("position %d: %d of %d records have bounds when there is a sketch", at, got, n)
		}
	}
	if published == 0 {
		t.Error("no community was published when its bounds were known to be too wide")
	}
}

// An emission without communities has nothing to estimate: the core must not follow the
// graph for it, and the first community makes it follow.
func TestACoreStaysColdUntilThereIsACommunity(t *testing.T) {
	core := newCore(t, Config{Classes: 2})
	defer core.Close()
	core.Step(crowd(1, 0))
	if core.warm() {
		t.Error("a core without communities follows the graph")
	}
	if result := core.Step(crowd(2, 1)); !core.warm() || len(result.Estimates) == 0 {
		t.Errorf(
			"warm %t, %d estimates after the first community",
			core.warm(),
			len(result.Estimates),
		)
	}
}

// However many communities are touched, an emission must solve no more than it can bear, those
// first that were solved longest ago; none waits for longer than all take. Where the next emission
// is far away, or all is asked for, all are solved.
func TestNoCommunityWaitsLongerThanAllTake(t *testing.T) {
	const many, classes, most = 900, 2, 200
	config := Config{
		Classes: classes, Emit: Emit{Threshold: 0.1, AtLeastEvery: 5 * time.Second},
		Work: Work{Solving: most * (8*classes*classes + solveWork)},
	}
	for shards := range 3 {
		config.Shards = shards
		core := newCore(t, config)
		core.Step(crowd(1, 60)) // warm from here on
		bound := max(shards, 1) * most
		published, last, emissions := map[string]event.Position{}, event.Position(1), 0
		for at := event.Position(2); ; at++ {
			b := &event.Batch{First: at, Last: at, Time: event.Time(at) * 1e8, Emit: true}
			if at == 2 {
				b.Members = crowd(at, many).Members
			}
			b.Members = append(b.Members, event.Member{ // a vertex with a label
				Community: "c7", Vertex: event.NumberID(0), Multiplicity: uint32((at + 1) % 2),
			})
			result := core.Step(b)
			emissions++
			for _, e := range result.Estimates {
				if published[e.Community] = at; e.Community == "c7" {
					last = at
				}
			}
			if n := len(result.Estimates); n > bound {
				t.Errorf(
					"%d shards, position %d: %d records, want at most %d", shards, at, n, bound,
				)
			}
			if at-last > many/most+2 {
				t.Errorf(
					"%d shards, position %d: the community that moves waits since %d", shards, at,
					last,
				)
			}
			if !result.Behind || emissions > 40 {
				break
			}
		}
		if len(published) < many-60 || emissions > 2*many/most {
			t.Errorf(
				"%d shards: %d of %d communities were published in %d emissions, each can bear %d",
				shards, len(published), many, emissions, bound,
			)
		}
		core.Close()
	}
	config.Shards = 1
	for _, all := range []bool{false, true} {
		core := newCore(t, config)
		core.Step(crowd(1, 60))
		b := crowd(2, many)
		if b.EmitAll = all; !all {
			b.Time = core.time + 5e9
		}
		result := core.Step(b)
		if len(result.Estimates) < many-60 || result.Behind {
			t.Errorf("all asked for: %v: %d of %d communities were published, behind: %v",
				all, len(result.Estimates), many, result.Behind)
		}
		core.Close()
	}
}
