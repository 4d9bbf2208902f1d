package incremental

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Changes below the threshold must be small against the standard error and a large part of
// all changes, and must be published on request by the log.
func TestUnpublishedChangesAreSmall(t *testing.T) {
	for _, test := range []struct {
		classes  int
		engine   string
		methods  []quant.Method
		solvedAt float64 // at most this share of the records of a core without a gate
	}{
		{2, EnginePrimal, []quant.Method{quant.Auto}, 0.6},
		{2, EngineDual, []quant.Method{quant.Auto}, 0.6},
		{5, EngineDual, []quant.Method{quant.Auto}, 0.85},
		{3, EnginePrimal, []quant.Method{quant.SISNACC, quant.Diff, quant.ML, quant.PCC}, 0.9},
	} {
		name := fmt.Sprintf("%d classes, %s, %v", test.classes, test.engine, test.methods)
		config := Config{
			Classes:   test.classes,
			Engine:    test.engine,
			Estimates: optionsOf(test.methods...),
		}
		log := newTown(3, test.classes, 1200, 12)
		always := newCore(t, config)
		config.Emit = Emit{Threshold: 0.1, AtLeastEvery: time.Minute}
		gated := newCore(t, config)
		latest, all, published := map[string]quant.Estimate{}, 0, 0
		var apart, grown []float64
		for i := range 46 {
			batch := log.step
			if i == 0 {
				batch = log.start
			}
			b := batch()
			b.EmitAll = i == 45
			records := gated.Step(b).Estimates
			for _, e := range records {
				latest[e.Community+e.Method] = e
			}
			truth := always.Step(b).Estimates
			if i > 0 && i < 45 {
				published, all = published+len(records), all+len(truth)
			}
			for _, e := range truth {
				last := latest[e.Community+e.Method]
				for k, q := range e.Prevalence {
					if b.EmitAll && last.Prevalence[k] != q {
						t.Errorf(
							"%s: %s by %s was %v at the end, want %v", name, e.Community, e.Method,
							last.Prevalence, e.Prevalence,
						)
					}
					apart = append(apart, math.Abs(last.Prevalence[k]-q)/last.SE[k])
					grown = append(grown, math.Abs(math.Log(e.SE[k]/last.SE[k])))
				}
			}
		}
		gated.Close()
		always.Close()
		slices.Sort(apart)
		slices.Sort(grown)
		n := len(apart)
		t.Logf(
			"%s: %d of %d records, unpublished median %.3f, p99 %.3f, max %.3f; logarithm of "+
				"standard errors p99 %.3f, max %.3f",
			name,
			published,
			all,
			apart[n/2],
			apart[n*99/100],
			apart[n-1],
			grown[n*99/100],
			grown[n-1],
		)
		if all == 0 || published == 0 || float64(published) > test.solvedAt*float64(all) {
			t.Errorf("%s: %d of %d records were published", name, published, all)
		}
		if p99 := apart[n*99/100]; p99 > 0.12 {
			t.Errorf(
				"%s: one share in a hundred was %.3f standard errors from what was published",
				name,
				p99,
			)
		}
		// A single one of hundreds is a matter of luck. People speak every few seconds here, so
		// that the lag depends on when a movement was published.
		if p99, most := grown[n*99/100], grown[n-1]; p99 > 0.2 || most > 0.4 {
			t.Errorf(
				"%s: a standard error was off by a factor of %.2f, one in a hundred by %.2f", name,
				math.Exp(most), math.Exp(p99),
			)
		}
	}
}

// A checkpoint that follows an emission of all that moved must find nothing that this missed:
// a restart with nothing new publishes nothing.
func TestNothingMovesAfterEverythingWasPublished(t *testing.T) {
	for _, engine := range []string{EnginePrimal, EngineDual} {
		config := Config{
			Classes:   2,
			Engine:    engine,
			Estimates: optionsOf(quant.Auto),
			Emit:      Emit{Threshold: 0.1, AtLeastEvery: time.Minute},
		}
		log, core, all := newTown(5, 2, 600, 6), newCore(t, config), 0
		for i := range 30 {
			b := log.Next()
			b.EmitAll, b.Checkpoint = i%6 == 5, i%6 == 5
			b.Emit = b.Emit || b.EmitAll
			records := core.Step(b).Estimates
			if !b.EmitAll {
				continue
			}
			all += len(records)
			end := &event.Batch{
				First:   log.next,
				Last:    log.next,
				Time:    b.Time + 4e8,
				Emit:    true,
				EmitAll: true,
			}
			log.next++
			if again := core.Step(end).Estimates; len(again) > 0 {
				t.Errorf(
					"%s: step %d: %d records were published, and %d again when nothing had changed",
					engine, i, len(records), len(again),
				)
			}
		}
		if all == 0 {
			t.Errorf("%s: nothing was published at all", engine)
		}
		core.Close()
	}
}

func optionsOf(methods ...quant.Method) (list []quant.Options) {
	for _, m := range methods {
		o := quant.DefaultOptions()
		o.Method = m
		list = append(list, o)
	}
	return list
}

// Every changed estimate must be published once its last record is old enough. A community
// without changes must not be published.
func TestOldRecordsAreRenewed(t *testing.T) {
	log := newTown(5, 2, 600, 4)
	config := Config{Classes: 2, Emit: Emit{Threshold: emitThresholdMax, AtLeastEvery: time.Second}}
	core := newCore(t, config)
	defer core.Close()
	begun, last, renewed := map[string]event.Time{}, map[string]quant.Estimate{}, 0
	for i := range 60 {
		batch := log.step
		if i == 0 {
			batch = log.start
		}
		b := batch()
		for _, e := range core.Step(b).Estimates {
			if at, ok := begun[e.Community]; ok {
				renewed++
				before := last[e.Community]
				same := e.Posterior == before.Posterior && slices.Equal(e.Flags, before.Flags)
				for k, n := range e.NEff {
					same = same && math.Abs(n/before.NEff[k]-1) <= 0.1
				}
				if same && b.Time-at < event.Time(time.Second) {
					t.Errorf("%s was published after %v", e.Community, time.Duration(b.Time-at))
				}
			}
			begun[e.Community], last[e.Community] = b.Time, e
		}
		if !b.Emit {
			continue
		}
		for name, at := range begun {
			if b.Time-at > event.Time(time.Second+300*time.Millisecond) {
				t.Errorf("%s was not published for %v", name, time.Duration(b.Time-at))
			}
		}
	}
	if renewed < 10 {
		t.Errorf("only %d records were renewed", renewed)
	}
	quiet := event.Batch{
		First:   core.Position() + 1,
		Last:    core.Position(),
		Time:    core.time,
		Emit:    true,
		EmitAll: true,
	}
	core.Step(&quiet)
	quiet.Time, quiet.EmitAll = quiet.Time+event.Time(time.Minute), false
	if list := core.Step(&quiet).Estimates; len(list) > 0 {
		t.Errorf("%d records of communities that nothing happened to", len(list))
	}
}

// With 5, 10 and 20 classes the same log must give the same records on one processor and
// on two, and with a restart at every checkpoint.
func TestGatedRecordsDependOnTheLogAlone(t *testing.T) {
	for i, classes := range []int{5, 10, 20} {
		config := Config{Classes: classes, Emit: Emit{Threshold: 0.1, AtLeastEvery: time.Second}}
		config.Engine = []string{EnginePrimal, "", EngineDual}[i]
		run := func(processors int, restart bool) (all []quant.Estimate) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			core, log := newCore(t, config), newTown(uint64(classes), classes, 400, 10)
			for i := range 25 {
				batch := log.step
				if i == 0 {
					batch = log.start
				}
				b := batch()
				b.Checkpoint = i%4 == 1
				all = append(all, core.Step(b).Estimates...)
				if b.Checkpoint && restart {
					twin := restored(t, uint64(classes), core, config)
					core.Close()
					core = twin
				}
			}
			core.Close()
			return all
		}
		want := run(1, false)
		if len(want) < 15 {
			t.Fatalf("%d classes: only %d records", classes, len(want))
		}
		if got := run(2, true); !reflect.DeepEqual(want, got) {
			t.Errorf("%d classes: other records on two processors and with restarts", classes)
		}
	}
}

// A label changes the mean residual of all labels. After a small change, communities that the label
// does not touch must be left alone. After a large change, all communities must be checked.
func TestALabelUpdatesAllWhenItMatters(t *testing.T) {
	const many = 400
	core := newCore(
		t,
		Config{Classes: 2, Engine: EngineDual, Emit: Emit{Threshold: 0.1, AtLeastEvery: time.Hour}},
	)
	defer core.Close()
	begin := crowd(1, many)
	begin.EmitAll = true
	core.Step(begin)
	predict := func(position event.Position, unit uint32, vertices ...uint64) *event.Batch {
		b := &event.Batch{
			First: position,
			Last:  position,
			Time:  event.Time(position) * 1e8,
			Emit:  true,
		}
		for _, v := range vertices {
			id := event.NumberID(v)
			b.Predictions = append(
				b.Predictions,
				event.Prediction{Vertex: id, Units: []uint32{unit, event.One - unit}},
			)
			at, _ := core.View().
				Lookup(id)
				// asserted again, so that the label is paired with the new one
			b.Labels = append(b.Labels, event.Label{Vertex: id, Class: core.View().Label(at).Class})
		}
		return b
	}
	relabel := func(position event.Position, class event.Class, vertices ...uint64) *event.Batch {
		b := &event.Batch{
			First: position,
			Last:  position,
			Time:  event.Time(position) * 1e8,
			Emit:  true,
		}
		for _, v := range vertices {
			b.Labels = append(b.Labels, event.Label{Vertex: event.NumberID(v), Class: class})
		}
		return b
	}
	for _, test := range []struct {
		name  string
		batch *event.Batch
		all   bool
	}{
		{
			"a label's prediction moves by a little", predict(2, event.One/4+event.One/4096, 0),
			false,
		},
		{"half the labels are others", relabel(3, 0, 0, 5, 10, 15, 20), true},
	} {
		solved := map[string]bool{}
		for _, e := range core.Step(test.batch).Estimates {
			solved[e.Community] = true
		}
		for id := range tally.CommunityID(many) {
			if core.tallies.Progress(id).Moved {
				solved[core.View().CommunityName(id)] = true
			}
		}
		published := len(solved)
		if (published == many) != test.all || !test.all && published > many/4 {
			t.Errorf(
				"%s: %d of %d communities were solved or have moved", test.name, published, many,
			)
		}
	}
	end := relabel(4, 0, 25)
	end.EmitAll = true
	if n := len(core.Step(end).Estimates); n != many {
		t.Errorf("where all that moved is published, %d of %d communities are", n, many)
	}
}
