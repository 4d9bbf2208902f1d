package incremental

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gqlstream/ingest/event"
)

// A dual must take over from fields little by little: at each emission for a few functions, while the communities
// that were there go on and new ones wait. Then all have an estimate, and all masses are those of a solve from
// nothing. Where all is asked for, or a checkpoint comes, it takes over at once.
func TestADualTakesOverLittleByLittle(t *testing.T) {
	const old, many, classes = 5, 60, 12 // two solves for the masses and two for the residuals
	for _, end := range []string{"", "checkpoint", "all"} {
		config := Config{Classes: classes, Emit: Emit{Threshold: 0.001, AtLeastEvery: 5 * time.Second}, handoverWork: 1}
		core := newCore(t, config)
		core.Step(wideCrowd(1, classes, old))
		published := map[string]bool{}
		at, emissions := event.Position(2), 0
		for ; ; at++ {
			b := wideCrowd(at, classes, many)
			b.Time *= 10 // labels do not come so fast that an emission waits
			b.Checkpoint, b.EmitAll = end == "checkpoint" && at == 4, end == "all" && at == 4
			result := checkedStep(t, 0, int(at), core, b)
			if result.Engine == EngineDual && !b.Checkpoint { // whose estimates are made before
				break
			}
			emissions++
			if !result.Behind || len(result.Estimates) == 0 {
				t.Errorf("%q, position %d: %d estimates of those that were there, behind: %v", end, at, len(result.Estimates), result.Behind)
			}
			for _, e := range result.Estimates {
				published[e.Community] = true
			}
			if b.Checkpoint {
				at++
				break
			}
		}
		if names := slices.Sorted(maps.Keys(published)); len(names) != old {
			t.Errorf("%q: %s were published before the dual took over, want the first %d", end, strings.Join(names, " "), old)
		}
		if want := map[string]int{"": 1 + 3*(handoverRest+1), "checkpoint": 3, "all": 2}[end]; emissions != want {
			t.Errorf("%q: the dual took over after %d emissions, want %d", end, emissions, want)
		}
		checkKernels(t, 0, int(at), core)
		core.Close()
	}
}

// wideCrowd is crowd with so many classes.
func wideCrowd(position event.Position, classes, communities int) *event.Batch {
	b := crowd(position, communities)
	for i := range b.Predictions {
		units := make([]uint32, classes)
		units[i%classes] = event.One / 2
		units[(i+int(position))%classes] += event.One - event.One/2
		b.Predictions[i].Units = units
	}
	for i := range b.Labels {
		b.Labels[i].Class = event.Class(i % classes)
	}
	return b
}

// While a dual takes over, one that takes over little by little must give what one gives that takes over at once, and
// after a restart in the midst of it the same bits as without.
func TestTakingOverSlowlyIsTakingOver(t *testing.T) {
	const classes = 12
	slow := Config{Classes: classes, handoverWork: 1}
	fast := Config{Classes: classes, handoverWork: math.MaxInt32}
	a, b := newCore(t, slow), newCore(t, fast)
	defer b.Close()
	var twin *Core
	compared := 0
	for at := event.Position(1); at < 14; at++ {
		communities := 5
		if at > 3 {
			communities = 60
		}
		batch := func() *event.Batch {
			batch := wideCrowd(at, classes, communities)
			batch.Checkpoint = at == 5
			return batch
		}
		got, want := checkedStep(t, 0, int(at), a, batch()), b.Step(batch())
		if twin != nil {
			if diff := cmp.Diff(got.Estimates, twin.Step(batch()).Estimates); diff != "" {
				t.Fatalf("position %d, without (-) and with a restart (+):\n%s", at, diff)
			}
		}
		if got.Compacted {
			twin = restored(t, 0, a, slow)
		}
		if at < 10 { // later emissions have the same second moments
			continue
		}
		for i := range got.Estimates {
			x, y := got.Estimates[i], want.Estimates[i]
			for k := range x.Prevalence {
				if d := math.Abs(x.Prevalence[k] - y.Prevalence[k]); d > 0.05*y.SE[k] {
					t.Errorf("position %d, %s: class %d is %g, and %g where the dual came at once (error %g)", at, x.Community, k, x.Prevalence[k], y.Prevalence[k], y.SE[k])
				}
				compared++
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
	a.Close()
	twin.Close()
}
