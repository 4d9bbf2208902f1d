package alerts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gqlstream/quant"
)

// everyRule has a rule of each kind.
func everyRule(t testing.TB) []Rule {
	back := 0.45
	return []Rule{
		rule(
			t,
			"low > 0.5",
			func(r *Rule) { r.Name, r.Recover, r.For = "low", &back, 3*time.Second },
		),
		rule(
			t,
			"high < 0.4",
			func(r *Rule) { r.Name, r.NoData, r.NoDataAfter = "high", noDataAlert, 5*time.Second },
		),
		rule(
			t,
			"point > 0.6",
			func(r *Rule) { r.Name, r.For, r.NoData = "point", 2*time.Second, noDataOK },
		),
		rule(
			t,
			"change < -0.2",
			func(r *Rule) {
				r.Name, r.Over, r.Communities = "change", 10*time.Second,
					[]string{"c*"}
			},
		),
		rule(
			t,
			"cusum",
			func(r *Rule) { r.Name, r.Every, r.Classes = "cusum", 2*time.Second, nil },
		),
		rule(
			t,
			"change over 20s",
			func(r *Rule) {
				r.Name, r.Communities = "any change",
					[]string{"c*", "difference(a, c1)"}
			},
		),
		rule(t, "low difference(a,c1) > 0.1", func(r *Rule) { r.Name = "apart" }),
		rule(
			t,
			"high < 0.5",
			func(r *Rule) {
				r.Name, r.Communities = "one or apart",
					[]string{"difference(b, c2)", "a"}
			},
		),
		rule(t, "point > 0.7", func(r *Rule) {
			r.Name, r.Every, r.For, r.Communities = "grid", 3*time.Second, 3*time.Second, []string{
				"a",
				"nobody",
			}
		}),
	}
}

// emission is one of a random history.
type emission struct {
	at        Moment
	estimates []quant.Estimate
	rules     []Rule // nil: as they are
}

// history makes emissions at uneven times, with suppressed and flagged records,
// gaps, changes of the model and of the rules.
func history(t testing.TB, seed uint64, n int) []emission {
	random := rand.New(rand.NewPCG(seed, 31))
	all := everyRule(t)
	names := []string{"a", "b", "c1", "c2"}
	shares := make([]float64, len(names))
	out := make([]emission, n)
	now, version := start, 0
	before := map[string]quant.Estimate{}
	for i := range out {
		now += second/2 + random.Int64N(2*second)
		if random.IntN(40) == 0 { // those without data are forgotten meanwhile
			now += int64(goneAfter)
		}
		e := emission{at: Moment{Position: uint64(10*i + random.IntN(9)), Time: now}}
		for k, name := range names {
			if random.IntN(3) == 0 {
				continue
			}
			if random.IntN(40) == 0 {
				shares[k] = random.Float64()
			}
			shares[k] = min(0.95, max(0.05, shares[k]+0.02*random.NormFloat64()))
			r := record(name, shares[k], 0.02, 0.02)
			r.ModelVersion = fmt.Sprint(version)
			switch random.IntN(25) {
			case 0:
				r.Flags = []string{quant.FlagMixedModel}
			case 1:
				r.Flags = []string{quant.FlagNoCoverage}
			case 2:
				r = quant.Estimate{
					Community:  name,
					Suppressed: true,
					Flags:      []string{quant.FlagBelowFloor},
				}
			}
			e.estimates = append(e.estimates, r)
		}
		moves(before, e.estimates)
		if random.IntN(80) == 0 {
			version++
		}
		if random.IntN(60) == 0 {
			e.rules = slices.Clone(all)
			at := random.IntN(len(all))
			if random.IntN(2) == 0 {
				e.rules = slices.Delete(e.rules, at, at+1)
			} else {
				e.rules[at].For += time.Second
			}
		}
		out[i] = e
	}
	return out
}

// leaping gives emissions 100 to 149 times from a clock that is a day ahead. Log time then stands
// still up to emission 249. At emission 250 a clock event corrects it.
func leaping(list []emission) []emission {
	for i := range list[:250] {
		if i >= 150 {
			list[i].at.Time = list[149].at.Time
		} else if i >= 100 {
			list[i].at.Time += int64(24 * time.Hour)
		}
	}
	return list
}

// After a clock event no alert may hold a time of the leap, or wait for one.
func TestAlertsFollowAClockEvent(t *testing.T) {
	for seed := range uint64(4) {
		e, err := New(config(everyRule(t)...))
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range leaping(history(t, seed, 400)) {
			if x.rules != nil {
				_ = e.Configure(config(x.rules...))
			}
			e.Evaluate(x.at, x.estimates)
			for _, a := range e.list {
				now, d := x.at.Time, &a.Detector
				latest := max(a.Since, d.At, d.Looked, d.Up.Since, d.Down.Since, d.Then.Cell)
				for _, s := range d.Recent {
					latest = max(latest, s.Cell)
				}
				for _, s := range d.Past {
					latest = max(latest, s.Cell*width(a.rule))
				}
				if i >= 250 && (latest > now || a.Due > now+int64(time.Hour) && a.Due != dueNever) {
					t.Fatalf("seed %d, emission %d at %d: %+v", seed, i, now, a)
				}
			}
		}
	}
}

// An engine that is saved and restored at any moment must give the transitions of
// one that never stopped, and hold the same bytes afterwards, also if the broker's clock leaps.
func TestRestartChangesNothing(t *testing.T) {
	transitions := 0
	for seed := range uint64(10) {
		whole, err := New(config(everyRule(t)...))
		if err != nil {
			t.Fatal(err)
		}
		broken, _ := New(config(everyRule(t)...))
		random := rand.New(rand.NewPCG(seed, 32))
		list := history(t, seed, 400)
		if seed%2 == 1 {
			list = leaping(list)
		}
		for i, e := range list {
			if e.rules != nil {
				for _, x := range []*Engine{whole, broken} {
					if err := x.Configure(config(e.rules...)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if random.IntN(4) == 0 {
				data := broken.Save()
				if broken, err = Restore(config(), data); err != nil {
					t.Fatalf("seed %d emission %d: %v", seed, i, err)
				}
				if again := broken.Save(); string(again) != string(data) {
					t.Fatalf("seed %d emission %d: saved\n%s\nrestored\n%s", seed, i, data, again)
				}
				if rules := broken.config.Rules; random.IntN(
					2,
				) == 0 { // as a start with the same file does
					if err := broken.Configure(config(rules...)); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := whole.Evaluate(e.at, e.estimates)
			got := broken.Evaluate(e.at, e.estimates)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d emission %d:\n%v, want\n%v", seed, i, got, want)
			}
			if fmt.Sprint(whole.Active()) != fmt.Sprint(broken.Active()) {
				t.Fatalf("seed %d emission %d: active alerts differ", seed, i)
			}
			transitions += len(want)
		}
		if a, b := whole.Save(), broken.Save(); string(a) != string(b) {
			t.Fatalf("seed %d: the states differ:\n%s\n%s", seed, a, b)
		}
	}
	if transitions < 300 {
		t.Errorf("only %d transitions in all histories", transitions)
	}
	t.Logf("%d transitions", transitions)
}

// Firing and resolved must alternate for each alert, whatever happens.
func TestTransitionsAlternate(t *testing.T) {
	for seed := range uint64(10) {
		e, err := New(config(everyRule(t)...))
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]Transition{}
		ids := map[string]bool{}
		for _, x := range history(t, seed, 400) {
			if x.rules != nil {
				_ = e.Configure(config(x.rules...))
			}
			for _, tr := range e.Evaluate(x.at, x.estimates) {
				before, ok := last[tr.Alert]
				if tr.State == Firing && ok && before.State == Firing ||
					tr.State == Resolved && before.State != Firing {
					t.Fatalf("seed %d: %+v follows %+v", seed, tr, before)
				}
				if tr.State == Resolved && tr.Since != before.Since || ids[tr.ID] {
					t.Fatalf("seed %d: %+v ends %+v", seed, tr, before)
				}
				last[tr.Alert], ids[tr.ID] = tr, true
			}
		}
	}
}

func TestDamagedStateIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "{}", `{"format":4}`, `{"format":1,"classes":["a"],"alerts":[{"class":1,"rule":"r"}]}`,
		`{"format":1,"classes":["a"],"alerts":[{"class":0,"rule":"r"}]}`,
		`{"format":1,"classes":["a"],"alerts":[null]}`,
	} {
		if _, err := Restore(config(), []byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	e, err := New(config(everyRule(b)...))
	if err != nil {
		b.Fatal(err)
	}
	estimates := make([]quant.Estimate, 1000)
	for i := range estimates {
		estimates[i] = record(fmt.Sprintf("c%04d", i), 0.3, 0.02, 0.02)
	}
	now := start
	for b.Loop() {
		now += second / 10
		e.Evaluate(Moment{Position: uint64(now), Time: now}, estimates)
	}
	b.ReportMetric(float64(len(e.Save())), "bytes-saved")
}
