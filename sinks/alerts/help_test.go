package alerts

import (
	"fmt"
	"testing"
	"time"

	"gqlstream/quant"
)

const second = int64(time.Second)

// start is the log time at which the tests begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano()

// record is an estimate of class 0 at p with the interval p ± 2 se, and of class 1.
func record(community string, p, se, seChange float64, flags ...string) quant.Estimate {
	return quant.Estimate{
		Community: community, Method: "auto", ModelVersion: "m1", Flags: flags,
		Prevalence: []float64{
			p,
			1 - p,
		}, Low: []float64{p - 2*se, 1 - p - 2*se}, High: []float64{p + 2*se, 1 - p + 2*se},
		SE: []float64{se, se}, SEChange: []float64{seChange, seChange},
	}
}

func config(rules ...Rule) Config {
	return Config{
		Pipeline: "test",
		Classes:  []string{"left", "right"},
		Methods:  []string{"auto", "pcc"},
		Rules:    rules,
	}
}

// rule watches class left of every community.
func rule(t testing.TB, when string, change func(*Rule)) Rule {
	t.Helper()
	r := Rule{Name: "r", Classes: []string{"left"}, Drift: -1}
	if err := r.ParseWhen(when); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&r)
	}
	return r
}

// script feeds an engine one emission a second.
type script struct {
	t      testing.TB
	engine *Engine
	second int64
	all    []Transition
	before map[string]quant.Estimate // the newest records
}

func begin(t testing.TB, rules ...Rule) *script {
	t.Helper()
	e, err := New(config(rules...))
	if err != nil {
		t.Fatal(err)
	}
	return &script{t: t, engine: e, before: map[string]quant.Estimate{}}
}

// at evaluates an emission so many seconds after the start and returns its transitions as
// "rule community class state", with the reason after a semicolon.
func (s *script) at(after int64, estimates ...quant.Estimate) (out []string) {
	s.second = after
	moves(s.before, estimates)
	list := s.engine.Evaluate(
		Moment{Position: uint64(1000 + after), Time: start + after*second},
		estimates,
	)
	for _, x := range list {
		out = append(out, fmt.Sprintf("%s %s %s %s", x.Rule, x.Community, x.Class, x.State))
	}
	s.all = append(s.all, list...)
	return out
}

// want fails unless the emission gives exactly these.
func (s *script) want(after int64, estimates []quant.Estimate, want ...string) {
	s.t.Helper()
	for i := range estimates {
		estimates[i].Position = uint64(after)
	}
	if got := s.at(after, estimates...); fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("second %d: %v, want %v", after, got, want)
	}
}

func one(e quant.Estimate) []quant.Estimate { return []quant.Estimate{e} }

// moves completes records that do not say how their change divides: all of it moved.
func moves(before map[string]quant.Estimate, list []quant.Estimate) {
	for i := range list {
		e := &list[i]
		last, known := before[e.Community+e.Method]
		if k := len(e.Prevalence); k > 0 && known && e.Moved == nil {
			e.Moved, e.Revised, e.SERevised = make([]float64, k), make([]float64, k), make(
				[]float64,
				k,
			)
			for c := range k {
				e.Moved[c] = e.Prevalence[c] - last.Prevalence[c]
			}
		}
		if len(e.Prevalence) > 0 {
			before[e.Community+e.Method] = *e
		}
	}
}

// revised makes all of a change a revision.
func revised(e quant.Estimate, by float64) quant.Estimate {
	e.Moved, e.SEChange = []float64{0, 0}, []float64{0, 0}
	e.Revised, e.SERevised = []float64{by, -by}, []float64{0.01, 0.01}
	return e
}
