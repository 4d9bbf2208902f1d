package incremental

import (
	"iter"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
)

// simulatedSteps yields the steps of a simulated network up to a time; it could last longer, which
// decides how fast vertices arrive. A batch is valid until the next.
func simulatedSteps(
	t *testing.T, classes, vertices, communities int, labels float64, lasts, until time.Duration,
) iter.Seq[*event.Batch] {
	t.Helper()
	s := simulate.DefaultConfig()
	s.Seed, s.Vertices, s.Communities, s.Classes = 1, vertices, communities, classes
	s.Activity, s.LabelShare, s.Duration = 400, labels, lasts
	s.LabelRate, s.LabelRenew, s.PostRate = 0, 1, s.Activity/4
	network, err := simulate.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*event.Batch) bool) {
		for b := (event.Batch{}); network.Elapsed() < until; {
			if err := network.Next(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			if !yield(&b) {
				return
			}
		}
	}
}

// While labels arrive fast, emissions must wait, but at most half a second of log time. Soon after,
// every community must have second moments. The waiting must depend on the log alone: the records
// must be the same on two processors and with restarts.
func TestEmissionsWaitWhileAHistoryLoads(t *testing.T) {
	config := Config{Classes: 3, Engine: EngineDual, Emit: Emit{Threshold: 0.1}}
	run := func(processors int, restarts bool) (all []quant.Estimate) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		core, waited, last, i := newCore(t, config), 0, event.Time(0), 0
		for b := range simulatedSteps(t, 3, 2000, 40, .1, 8*time.Second, 6*time.Second) {
			b.Checkpoint = i%7 == 3
			result := core.Step(b)
			all = append(all, result.Estimates...)
			switch {
			case len(result.Estimates) > 0:
				last = b.Time
			case b.Emit && core.loading:
				if waited++; !result.Behind || b.Time-last >= event.Time(time.Second/2) {
					t.Errorf(
						"at %v: behind: %v, nothing was published since %v", b.Time, result.Behind,
						last,
					)
				}
			}
			if b.Checkpoint && restarts {
				twin := restored(t, 1, core, config)
				core.Close()
				core = twin
			}
			i++
		}
		defer core.Close()
		if waited < 10 {
			t.Errorf("only %d emissions waited", waited)
		}
		for id := range graphstore.Community(core.View().Communities()) {
			if core.tallies.Spread(id) == nil {
				t.Errorf("community %d has no second moments", id)
			}
		}
		return all
	}
	want := run(1, false)
	if got := run(2, true); len(want) < 200 || !reflect.DeepEqual(want, got) {
		t.Errorf("of %d records some are others on two processors and with restarts", len(want))
	}
}

// New coefficients must be said once. Where nothing moves afterwards the record stands for
// Emit.AtLeastEvery, so that alerts are blind no longer than that, and then for good, also after a
// restart.
func TestNewCoefficientsAreFlaggedOnce(t *testing.T) {
	const many = 40
	for _, engine := range []string{EnginePrimal, EngineDual} {
		config := Config{
			Classes: 2,
			Engine:  engine,
			Emit:    Emit{Threshold: 0.1, AtLeastEvery: 10 * time.Second},
		}
		core := newCore(t, config)
		begin := crowd(1, many)
		begin.EmitAll = true
		core.Step(begin)
		for i := range 30 {
			b := &event.Batch{
				First:      event.Position(2 + i),
				Last:       event.Position(2 + i),
				Time:       event.Time(time.Hour + time.Duration(i)*time.Second),
				Emit:       true,
				Checkpoint: i == 4,
			}
			records := core.Step(b).Estimates
			said := 0
			for _, e := range records {
				if slices.Contains(e.Flags, quant.FlagNewPosterior) {
					said++
				}
			}
			want := [2]int{
				0,
				0,
			} // records, and those with the flag: labels have no posterior, and no flag
			switch i {
			case 1:
				want = [2]int{many, many - many/5}
			}
			if got := [2]int{len(records), said}; got != want {
				t.Errorf(
					"%s: %d s after others could be fitted, records and those with the flag are "+
						"%v, want %v",
					engine,
					i,
					got,
					want,
				)
			}
			if b.Checkpoint {
				twin := restored(t, 1, core, config)
				core.Close()
				core = twin
			}
		}
		core.Close()
	}
}

// At an emission with a tenth more labels, the core must compute the reach of all communities
// again, so that the tolerance no longer follows the first few labels. The tolerance of a dual must
// be the wanted one, or at most toleranceSlack times that.
func TestToleranceFollowsLabels(t *testing.T) {
	core := newCore(t, Config{Classes: 3, Engine: EngineDual, Emit: Emit{Threshold: 0.1}})
	defer core.Close()
	asked, before := 0, 0.0
	for b := range simulatedSteps(t, 3, 6000, 200, .1, 8*time.Second, 6*time.Second) {
		core.Step(b)
		d, shared := core.kernels.(*sharedDual)
		if !shared || d.Labels == before {
			continue
		}
		view, least := core.View(), 1.0
		if now, want := d.dual.Tolerance(), d.tolerance(view); now < want ||
			now > toleranceSlack*want {
			t.Errorf("at %d the tolerance is %v, wanted is %v", b.Last, now, want)
		}
		for id := range graphstore.Community(view.Communities()) {
			if mean := core.tallies.Reach(id, d.dual); mean > 0 {
				least = min(least, core.reach(mean, view))
			}
		}
		if d.Labels > (1+reachGrowth)*before {
			if asked++; d.Reach != least {
				t.Errorf(
					"at %d with %v labels, before %v, the least reach is %v, taken for %v", b.Last,
					d.Labels, before, least, d.Reach,
				)
			}
		}
		before = d.Labels
	}
	if asked < 5 {
		t.Errorf("only %d emissions had a tenth more labels", asked)
	}
}
