package incremental

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// dualConfig is a configuration with a dual and every kind of cell, or only the kinds of
// some methods, or none.
func dualConfig(seed uint64, classes int) Config {
	config := sharing(allMethods(classes))
	config.Engine = EngineDual
	if seed%4 == 1 {
		config.Estimates = config.Estimates[:0]
		for _, m := range []quant.Method{quant.PACC, quant.NACC, quant.ACC, quant.Auto}[seed/4%4:] {
			o := quant.DefaultOptions()
			o.Method = m
			config.Estimates = append(config.Estimates, o)
		}
	}
	config.Classifier = []string{"", "", "", classifier.Name}[seed/2%4]
	if seed%7 == 3 {
		config.Evidence.Except = `language == "fr"`
	}
	return config
}

// At every emission of a random history the first moments of a core with a dual must
// agree with those of one with fields within the sum of the certificates, its sums
// be equal to a recount, and no effective number of labels exceed the labels, however
// old the second moments.
func TestDualAgreesWithPrimal(t *testing.T) {
	emitted := 0
	for seed := range uint64(120) {
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0,
		})
		config := dualConfig(seed, stream.Config.Classes)
		config.HalfLife = halfLifeOf(seed / 5)
		if seed%3 == 0 {
			config.Work.Sketches = 1 // hardly any
		}
		dual := newCore(t, config)
		config.Engine = EnginePrimal
		primal := newCore(t, config)
		for i := range 12 {
			batch := stream.Next()
			result := dual.Step(batch)
			primal.Step(batch)
			emitted += len(result.Estimates)
			checkEstimates(t, seed, i, result.Estimates)
			if err := checkCore(dual); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
			if dual.warm() && batch.Emit { // pushes wait for one
				checkKernels(t, seed, i, dual)
				checkMoments(t, fmt.Sprintf("seed %d batch %d", seed, i), dual, primal)
			}
		}
		dual.Close()
		primal.Close()
	}
	if emitted < 120 {
		t.Fatalf("only %d estimates", emitted)
	}
}

// sumAgain makes a core whose batch ended with a checkpoint return its statistics again.
func sumAgain(core *Core) {
	if d, shared := core.kernels.(*sharedDual); shared {
		d.dual.Prepare(core.View())
	}
}

func checkMoments(t *testing.T, where string, dual, primal *Core) {
	t.Helper()
	sumAgain(dual)
	for id := range graphstore.Community(dual.View().Communities()) {
		if int(id) >= len(primal.kernels.(*fields).each) {
			continue // new since the last emission
		}
		got, want := dual.kernels.Statistics(id, dual.View()), primal.kernels.Statistics(
			id,
			primal.View(),
		)
		certificates := dual.kernels.Certificate(id) + primal.kernels.Certificate(id)
		allowed := want.KernelSum*certificates + 1e-9
		if got.ClassG2 != nil { // weights are scaled to sum to the effective number of labels
			scale, labels := 0.0, dual.tallies.LabelMass()
			for _, n := range got.ClassN {
				scale += n / max(labels, 1e-300)
			}
			allowed *= max(scale, 1)
		}
		for kind, cells := range [][2]*stats.Cells{
			{got.Soft, want.Soft},
			{got.SoftPair, want.SoftPair},
			{got.Hard, want.Hard},
			{got.HardPair, want.HardPair},
		} {
			if (cells[0] == nil) != (cells[1] == nil) {
				t.Fatalf("%s: cells of kind %d: %v, want %v", where, kind, cells[0], cells[1])
			}
			if cells[0] == nil {
				continue
			}
			if !slices.Equal(cells[1].N, cells[0].N) {
				t.Fatalf("%s: N of kind %d: %v, primal %v", where, kind, cells[0].N, cells[1].N)
			}
		}
		for i, n := range got.ClassN {
			a1, a2 := got.ClassA1[i], got.ClassA2[i]
			// a value of a class is within the certificate, and fades out below twice as much
			if off := math.Abs(a1 - want.ClassA1[i]); off > 3*allowed || math.IsNaN(off) {
				t.Fatalf(
					"%s: A1 of class %d: %v, primal %v, allowed %v", where, i, a1, want.ClassA1[i],
					3*allowed,
				)
			}
			if got.ClassG2 == nil && a1*a1 > n*a2*(1+1e-9) {
				t.Fatalf("%s: class %d: effective labels %v of %v", where, i, a1*a1/a2, n)
			}
		}
	}
}

// With exact kernels a core with a dual must publish the shares of a core with fields. The
// tolerance allows for the influence of second moments.
func TestDualEstimatesEqualPrimal(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: seed%5 == 0},
		)
		config := dualConfig(seed, stream.Config.Classes)
		if config.HalfLife = halfLifeOf(seed); config.HalfLife < time.Second {
			// a class that is much older than the youngest label is below the tolerance
			config.HalfLife *= 500
		}
		config.Tolerance = 1e-11
		var estimates [2]map[string]quant.Estimate
		var cores [2]*Core
		for i, engine := range []string{EnginePrimal, EngineDual} {
			config.Engine = engine
			core := newCore(t, config)
			defer core.Close()
			cores[i] = core
		}
		// the latest estimates: those of communities that did not move must still be right
		estimates[1] = map[string]quant.Estimate{}
		for i := range 12 {
			batch := stream.Next()
			estimates[0] = map[string]quant.Estimate{}
			for side, core := range cores {
				for _, e := range core.Step(batch).Estimates {
					e.Config, e.Certificate, e.SEChange, e.Position, e.Time, e.Engine = "", 0, nil,
						0, "", ""
					e.Moved, e.Revised, e.SERevised, e.SELag = nil, nil, nil, nil
					e.EvidenceAge, e.LabelAge = 0, 0
					e.Flags = slices.DeleteFunc(
						e.Flags,
						func(f string) bool { return quant.FlagName(f) == quant.FlagShift },
					) // a test at a bar
					estimates[side][e.Community+" "+e.Method] = e
				}
			}
			for key, want := range estimates[0] {
				got, ok := estimates[1][key]
				if !ok {
					t.Fatalf("seed %d batch %d: no estimate of %s", seed, i, key)
				}
				if slices.ContainsFunc(slices.Concat(want.Flags, got.Flags), func(f string) bool {
					return slices.Contains(
						[]string{quant.FlagIllConditioned, quant.FlagUnreachable},
						quant.FlagName(f),
					)
				}) {
					continue // the last bits decide between answers that are as good
				}
				compared++
				tolerance := 1e-4
				if want.Method == string(quant.Auto) ||
					want.Lambda != got.Lambda { // both weigh by second moments
					tolerance = 5e-3
				}
				want, got = withoutErrors(want), withoutErrors(got)
				if diff := cmp.Diff(want, got, cmpopts.EquateApprox(tolerance,
					tolerance)); diff != "" {
					t.Fatalf("seed %d batch %d: %s: fields (-), dual (+):\n%s", seed, i, key, diff)
				}
			}
		}
	}
	if compared < 1000 {
		t.Fatalf("only %d estimates compared", compared)
	}
}

// withoutErrors removes the figures of a record that use second moments, which a dual
// estimates.
func withoutErrors(e quant.Estimate) quant.Estimate {
	e.Low, e.High, e.SE, e.NEff, e.Influence, e.Lambda, e.Variance, e.VarianceAge, e.Flags = nil,
		nil, nil, nil, nil, 0, "", 0, nil
	return e
}

// While labels arrive, the second moments of a dual must be recent enough: 99 in 100 shares
// must be within .05 standard errors of the shares by exact fields.
func TestDualIsRightWhileLabelsArrive(t *testing.T) {
	dual := newCore(t, Config{Classes: 2, Engine: EngineDual})
	fields := newCore(t, Config{Classes: 2, Engine: EnginePrimal, Tolerance: 1e-8})
	var apart []float64
	for b := range simulatedSteps(t, 2, 4000, 32, .05, 6*time.Second, 3*time.Second) {
		records := map[string]quant.Estimate{}
		for _, e := range dual.Step(b).Estimates {
			records[e.Community] = e
		}
		for _, e := range fields.Step(b).Estimates {
			if got, ok := records[e.Community]; ok {
				apart = append(apart, math.Abs(got.Prevalence[0]-e.Prevalence[0])/e.SE[0])
			}
		}
	}
	slices.Sort(apart)
	if n := len(apart); n < 500 || apart[n*99/100] > 0.055 {
		t.Errorf(
			"of %d shares one in a hundred is %.3f standard errors from those of fields",
			n,
			apart[n*99/100],
		)
	}
}

// The sums that a dual keeps over a community must be the sums over its members up to rounding.
func TestSumsOfCommunitiesEqualThoseOfMembers(t *testing.T) {
	core, compared := newCore(t, Config{Classes: 3, Engine: EngineDual}), 0
	for b := range simulatedSteps(t, 3, 2000, 40, .01, 3*time.Second, 2*time.Second) {
		core.Step(b)
		d, shared := core.kernels.(*sharedDual)
		if !shared || !b.Emit {
			continue
		}
		view, dual := core.View(), d.dual
		var kept [][]float64
		for id := range graphstore.Community(view.Communities()) {
			sums, _ := dual.Estimate(id)
			kept = append(kept, sums)
		}
		dual.ForgetSums()
		dual.Prepare(view)
		for id, have := range kept {
			want, _ := dual.Estimate(graphstore.Community(id))
			for f, x := range have {
				compared++
				if math.Abs(x-want[f]) > 1e-10*(1+math.Abs(want[f])) {
					t.Fatalf(
						"at %d the sum of function %d over community %d is %v, its members have %v",
						b.Last,
						f,
						id,
						x,
						want[f],
					)
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d values were compared", compared)
	}
}

// A core with a dual that was restored anywhere in a history must go on with the same
// estimates, bit for bit, as one that never stopped, and save the same bytes; also
// while second moments wait for their sketches.
func TestRestoredDualGoesOnBitForBit(t *testing.T) {
	for seed := range uint64(40) {
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: true},
		)
		config := dualConfig(seed, stream.Config.Classes)
		config.HalfLife = halfLifeOf(seed / 3)
		if seed%2 == 1 {
			config.Work.Sketches = float64(10 + 100*seed)
		}
		crowded(&config, seed)
		restarts{batches: 28, every: 4}.leaveNoTrace(t, seed, stream, config)
	}
}

// A change that moves all communities after the last emission before a checkpoint must survive a
// restart. In these histories labels come or go at that point. Some communities are published for
// this reason alone.
func TestCommonMovementSurvivesARestart(t *testing.T) {
	for _, seed := range []uint64{20, 101, 222, 353} {
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: true},
		)
		config := allMethods(stream.Config.Classes)
		config.Engine, config.Estimates = EngineDual, optionsOf(quant.Auto)
		config.Emit = Emit{Threshold: 0.1, AtLeastEvery: time.Second}
		restarts{batches: 28, every: 4}.leaveNoTrace(t, seed, stream, config)
	}
}

// A core with a dual must give the same bits on one processor and on several.
func TestDualDoesNotDependOnProcessors(t *testing.T) {
	for seed := range uint64(20) {
		sameOnProcessors(t, seed, 20, func(c *Config) {
			*c = sharing(*c)
			c.Engine = EngineDual
			c.Work.Sketches = float64(seed%2) * 500
			crowded(c, seed)
		})
	}
}
