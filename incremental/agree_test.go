//go:build !race

// The histories below compare numbers, for minutes, and start nothing that other tests do
// not start: under the race detector, ten times slower, they would only cost time.

package incremental

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
)

// However many classes there are, the shares of a core must be those of exact fields within
// a twentieth of their standard error, but for one in a hundred.
func TestErrorsAreBelowTheStandardErrors(t *testing.T) {
	const most = 0.05
	weighing := []quant.Method{quant.SIS, quant.SISNACC, quant.Diff, quant.ML, quant.Auto}
	for _, size := range []struct {
		engine                   string
		classes, vertices, seeds int
		methods                  []quant.Method
	}{
		{EnginePrimal, 2, 2000, 2, weighing},
		{EnginePrimal, 10, 1000, 1, weighing},
		{EngineDual, 2, 2000, 2, []quant.Method{quant.Auto}},
		{EngineDual, 5, 1500, 1, []quant.Method{quant.Auto}},
		{EngineDual, 10, 1000, 1, []quant.Method{quant.Auto}},
		{EngineDual, 20, 1200, 1, []quant.Method{quant.Auto}},
	} {
		apart := map[string][]float64{}
		for seed := range uint64(size.seeds) {
			log := newTown(seed, size.classes, size.vertices, 12)
			errorsOfShares(t, apart, size.engine, size.classes, size.methods, 19, log.Next)
		}
		for _, m := range size.methods {
			agreeWithin(
				t, fmt.Sprintf("%s, %d classes, %s", size.engine, size.classes, m),
				apart[string(m)], most,
			)
		}
	}
}

// agreeWithin fails where one distance in a hundred is more than most.
func agreeWithin(t *testing.T, where string, apart []float64, most float64) {
	t.Helper()
	slices.Sort(apart)
	n := len(apart)
	if n < 300 {
		t.Fatalf("%s: only %d shares were compared", where, n)
	}
	t.Logf(
		"%s: %d shares, median %.4f, p99 %.4f, max %.4f", where, n, apart[n/2], apart[n*99/100],
		apart[n-1],
	)
	if p99 := apart[n*99/100]; p99 > most {
		t.Errorf(
			"%s: one share in a hundred is off by %.3f standard errors, want at most %v", where,
			p99, most,
		)
	}
}

// The same must hold where few labels arrive in a network of communities that are places:
// the errors around one label have one sign, and the members of a community share them.
func TestDualErrorsAreSmallWithFewLabels(t *testing.T) {
	for _, size := range []struct{ classes, labels int }{
		{2, 20}, {2, 50}, {5, 50}, {5, 120}, {10, 50}, {20, 50},
	} {
		s := simulate.DefaultConfig()
		s.Seed, s.Classes, s.Vertices, s.Communities, s.Duration = 7, size.classes, 3000, 8,
			4*time.Second
		s.LabelShare = float64(size.labels) / float64(s.Vertices)
		s.LabelRate, s.LabelRenew, s.PostRate = 0, 1, s.Activity/4
		network, err := simulate.New(s)
		if err != nil {
			t.Fatal(err)
		}
		next := func() *event.Batch {
			b := &event.Batch{}
			if err := network.Next(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			return b
		}
		apart := map[string][]float64{}
		errorsOfShares(t, apart, EngineDual, size.classes, []quant.Method{quant.Auto}, 40, next)
		agreeWithin(
			t, fmt.Sprintf("%d classes, %d labels", size.classes, size.labels),
			apart[string(quant.Auto)], 0.05,
		)
	}
}

// errorsOfShares runs a history through a core with this engine and one with exact fields, and
// appends the distances of their shares in standard errors by method.
func errorsOfShares(
	t *testing.T, apart map[string][]float64, engine string, classes int, methods []quant.Method,
	steps int, next func() *event.Batch,
) {
	t.Helper()
	config := Config{Classes: classes, Engine: engine}
	for _, m := range methods {
		o := quant.DefaultOptions()
		o.Method = m
		config.Estimates = append(config.Estimates, o)
	}
	core := newCore(t, config)
	defer core.Close()
	config.Engine, config.Tolerance = EnginePrimal, 1e-9
	exact := newCore(t, config)
	defer exact.Close()
	latest := map[string]quant.Estimate{} // an older record still holds
	for range steps {
		b := next()
		for _, e := range core.Step(b).Estimates {
			latest[e.Community+"/"+e.Method] = e
		}
		for _, e := range exact.Step(b).Estimates {
			got, ok := latest[e.Community+"/"+e.Method]
			if !ok {
				t.Fatalf("%d classes: no estimate of %s by %s", classes, e.Community, e.Method)
			}
			for k, q := range e.Prevalence {
				if e.SE[k] > 0 {
					apart[e.Method] = append(apart[e.Method], math.Abs(got.Prevalence[k]-q)/e.SE[k])
				}
			}
		}
	}
}
