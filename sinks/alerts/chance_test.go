package alerts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/quant"
)

// counting is a record with so many members that moved to class 0 and so many that moved
// away from it. Its estimate moved by another amount.
func counting(community string, members, to, away int, moved float64) quant.Estimate {
	e := record(community, 0.5, 0.05, 0.02)
	e.Members = float64(members)
	n := float64(members)
	c, se := float64(to-away)/n, math.Sqrt(float64(to+away))/n
	e.Counted, e.SECounted = []float64{c, -c}, []float64{se, se}
	e.Moved, e.Revised = []float64{moved, -moved}, []float64{0, 0}
	e.SERevised = []float64{0, 0}
	return e
}

// quietly lets a day pass in ten communities of 1,000: now and then somebody changes sides, and an
// estimate moves by five points each time.
func quietly(s *script) (second int64) {
	rng := rand.New(rand.NewPCG(7, 1))
	for minute := range int64(24 * 60) {
		var list []quant.Estimate
		for c := range 10 {
			to, away := 0, 0
			if rng.IntN(20) == 0 {
				to = rng.IntN(2)
				away = 1 - to
			}
			moved := 0.05 * float64(1-2*rng.IntN(2))
			list = append(list, counting(fmt.Sprint("c", c), 1000, to, away, moved))
		}
		second = 60 * (minute + 1)
		s.want(second, list)
	}
	return second
}

// No alarm for a hub that moves an estimate by points, for a few members, or for a debate
// in which many change in both directions. An alarm at once for many who change in one
// direction.
func TestNewsAreMembersWhoMoveInOneDirection(t *testing.T) {
	for name, c := range map[string]struct {
		to, away int
		fires    bool
	}{
		"a hub":                   {0, 0, false},
		"three members":           {3, 0, false},
		"a debate":                {60, 55, false},
		"a jump":                  {60, 15, true},
		"a jump in the other way": {10, 55, true},
	} {
		s := begin(t, rule(t, "cusum", nil))
		now := quietly(s)
		got := s.at(now+60, counting("c3", 1000, c.to, c.away, 0.2))
		if fired := slices.Equal(got, []string{"r c3 left firing"}); fired != c.fires {
			t.Errorf("%s: %v", name, got)
		}
		if !c.fires {
			continue
		}
		for minute := range int64(20) { // then it is over, and the share stays
			s.at(now+120+60*minute, counting("c3", 1000, 0, 0, 0))
		}
		if end := s.all[len(s.all)-1]; end.State != Resolved || end.End != EndWindow {
			t.Errorf("%s: it ends with %+v", name, end)
		}
	}
}

// A change of many members at once must become less rare the more often it was seen.
func TestEvidenceIsLearned(t *testing.T) {
	var e evidence
	few, many := binOf(0.001*0.001, 1000), binOf(0.1*0.1, 1000)
	if few >= many || binOf(0, 1000) != -1 || binOf(1, 1e12) != evidenceBins-1 {
		t.Fatalf("bins %d and %d", few, many)
	}
	if got := e.above(many, 1); got != 1 {
		t.Errorf("before anything is known: %v", got)
	}
	for i := range 10_000 {
		bin := -1
		if i%10 == 0 {
			bin = few
		}
		e.learn(bin, 1)
	}
	if got := e.above(few, 1); math.Abs(got-0.1) > 0.001 {
		t.Errorf("a tenth of the windows: %v", got)
	}
	if one, eight := e.above(many, 1), e.above(many, 8); one > 3e-4 || eight < 7*one {
		t.Errorf("never seen: %v, of windows that overlap %v", one, eight)
	}
	for range 100 {
		e.learn(many, 1)
	}
	if got := e.above(many, 1); got < 0.009 {
		t.Errorf("seen a hundred times: %v", got)
	}
	e.learn(few, evidenceMemory)
	if e.Windows > evidenceMemory {
		t.Errorf("%v windows are kept", e.Windows)
	}
}

// The logarithm of a chance is right where it is computed, and where it is approximated.
func TestImprobable(t *testing.T) {
	for z, want := range map[float64]float64{
		0: 0, 1.959964: -math.Log(0.05), 4: -math.Log(6.334248e-5), 7.9999: 34.32, 8: 34.32,
		40: 800 + math.Log(40*math.Sqrt(math.Pi/2)),
	} {
		if got := improbable(z); math.Abs(got-want) > 0.02 {
			t.Errorf("%v errors: %v, want %v", z, got, want)
		}
	}
}

// In records of a version that did not count, the alerts must read the moved part of the
// change.
func TestRecordsWithoutACountAreRead(t *testing.T) {
	s := begin(t, rule(t, "cusum", nil))
	for minute := range int64(600) {
		s.want(60*(minute+1), one(record("x", 0.5, 0.02, 0.001)))
	}
	s.want(60*601, one(record("x", 0.6, 0.02, 0.01)), "r x left firing")
}
