package prequential

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gqlstream/ingest/event"
)

// judged draws a label and a prediction that is right with the accuracy of its class.
func judged(r *rand.Rand, accuracy []float64) (units []uint32, label event.Class) {
	k := len(accuracy)
	class := r.IntN(k)
	said := class
	if r.Float64() >= accuracy[class] {
		said = (class + 1 + r.IntN(k-1)) % k
	}
	units = make([]uint32, k)
	for j := range units {
		units[j] = event.One / 10 / uint32(k)
	}
	units[said] += event.One - uint32(k)*units[said]
	return units, event.Class(class)
}

// Over many runs of 10,000 labels with a classifier that stays as it is, the share of
// runs with an alarm must be small, and one that loses a good part of its accuracy
// must be found within a few hundred labels, nearly always.
func TestFalseAlarmsAndDelays(t *testing.T) {
	const alarmsMax, missedMax, delayMax = 18, 3, 450 // of the runs; mean delay in labels
	const runs, labels = 120, 10_000
	for _, c := range []struct {
		before, after []float64
	}{
		{[]float64{0.8, 0.8}, []float64{0.65, 0.65}},
		{[]float64{0.95, 0.7, 0.85}, []float64{0.85, 0.5, 0.7}},
		{
			[]float64{0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6},
			[]float64{0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4},
		},
		{[]float64{0.99, 0.99}, []float64{0.9, 0.9}},
	} {
		alarms, missed, delays := 0, 0, 0
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 3))
			m := New(len(c.before))
			raised := false
			for range labels {
				units, label := judged(r, c.before)
				m.Judge(1, units, label)
				raised = raised || m.Degraded(1)
			}
			if raised {
				alarms++
			}
			m.versions[0].Drift, m.versions[0].Degraded = 0, false
			delay := 0
			for ; delay < 5_000 && !m.Degraded(1); delay++ {
				units, label := judged(r, c.after)
				m.Judge(1, units, label)
			}
			delays += delay
			if delay == 5_000 {
				missed++
			}
		}
		t.Logf(
			"accuracy %v: alarms in %d of %d runs of %d labels; then %v: found after %d labels "+
				"on average, missed %d",
			c.before,
			alarms,
			runs,
			labels,
			c.after,
			delays/runs,
			missed,
		)
		if alarms > alarmsMax || delays/runs > delayMax || missed > missedMax {
			t.Errorf(
				"accuracy %v, then %v: %d alarms, mean delay %d, %d missed", c.before, c.after,
				alarms, delays/runs, missed,
			)
		}
	}
}

// A change in the mix of classes alone must raise nothing.
func TestPriorShiftIsNoDegradation(t *testing.T) {
	raised := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		m := New(2)
		accuracy := []float64{0.95, 0.6}
		for i := range 4_000 {
			units, label := judged(r, accuracy)
			if i > 1_000 && label == 0 && r.IntN(10) > 0 {
				continue // the class that is easy to tell becomes rare
			}
			m.Judge(0, units, label)
		}
		if m.Degraded(0) {
			raised++
		}
	}
	if raised > 5 {
		t.Errorf("%d of 100 runs ended with an alarm", raised)
	}
}

// The means must be those of the definition, and the flag must be lowered when the
// classifier recovers.
func TestScoresAndRecovery(t *testing.T) {
	m := New(2)
	m.Judge(4, []uint32{event.One / 4 * 3, event.One / 4}, 0)
	m.Judge(4, []uint32{event.One / 4, event.One / 4 * 3}, 0)
	m.Judge(4, []uint32{event.One / 2, event.One / 2}, 1) // a tie goes to class 0
	got := m.Versions()[0].Classes
	want := []Class{
		{
			Judged:        2,
			Accuracy:      0.5,
			Brier:         (0.125 + 1.125) / 2,
			LogScore:      -(math.Log(0.75) + math.Log(0.25)) / 2,
			ReferenceHits: 1,
		},
		{Judged: 1, Brier: 0.5, LogScore: math.Ln2},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Fatal(diff)
	}
	right, wrong := []uint32{event.One, 0}, []uint32{0, event.One}
	for i := range 200 {
		if i%5 == 0 {
			m.Judge(4, wrong, 0)
		}
		m.Judge(4, right, 0)
	}
	for range 40 {
		m.Judge(4, wrong, 0)
	}
	if !m.Degraded(4) || m.Degraded(5) {
		t.Fatal("wrong forty times in a row, and no alarm")
	}
	for range 100 {
		m.Judge(4, right, 0)
	}
	if m.Degraded(4) {
		t.Fatal("right a hundred times in a row, and still degraded")
	}
}

// The history of a monitor must be bounded, and a monitor must continue from its rows bit
// for bit.
func TestRowsGoOn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	m := New(3)
	for i := range 6_000 {
		units, label := judged(r, []float64{0.9, 0.5, 0.7})
		m.Judge(uint32(i/300+r.IntN(2)), units, label)
		if i%500 != 0 {
			continue
		}
		twin, err := Restore(3, m.Rows())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, twin, cmp.AllowUnexported(Monitor{})); diff != "" {
			t.Fatalf("after %d judgements: %s", i, diff)
		}
	}
	if n := len(m.Versions()); n != versionsMax {
		t.Errorf("%d versions are kept, want %d", n, versionsMax)
	}
	for _, bad := range [][]Row{
		{{}},
		append(m.Rows(), m.Rows()[:3]...),
		append(m.Rows()[3:6], m.Rows()[:3]...),
	} {
		if _, err := Restore(3, bad); err == nil {
			t.Errorf("restored from %d rows", len(bad))
		}
	}
}
