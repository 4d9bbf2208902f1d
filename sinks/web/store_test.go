package web

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/quant"
)

// A full series keeps its bound, its newest half whole, its first record and the
// records at which the model changed.
func TestHistoryIsThinnedNotCut(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 7, 8, 64, 65} {
		s := &series{}
		var switches []uint64
		for i := range uint64(1000) {
			e := estimate("x", "auto", i+1, 0.5)
			if i >= 300 {
				e.ModelVersion = "m2"
			}
			if i == 300 {
				switches = append(switches, e.Position)
			}
			s.add(newRecord(&e, s.latest, time.Now()), limit)
			if len(s.history) > limit {
				t.Fatalf("limit %d: %d records after %d", limit, len(s.history), i+1)
			}
			if got := s.history[len(s.history)-1]; got != s.latest || got.estimate.Position != i+1 {
				t.Fatalf("limit %d: the newest is at %d, want %d", limit, got.estimate.Position, i+1)
			}
		}
		for i := 1; i < len(s.history); i++ {
			before, r := s.history[i-1], s.history[i]
			if before.estimate.Position >= r.estimate.Position {
				t.Fatalf("limit %d: %d before %d", limit, before.estimate.Position, r.estimate.Position)
			}
			if !before.at.Before(s.whole) && r.estimate.Position != before.estimate.Position+1 {
				t.Errorf("limit %d: a gap at %d, though whole from %v", limit, r.estimate.Position, s.whole)
			}
		}
		if limit < 8 {
			continue
		}
		if first := s.history[0].estimate.Position; first != 1 {
			t.Errorf("limit %d: the first record is at %d, want 1", limit, first)
		}
		for _, p := range switches {
			if !slices.ContainsFunc(s.history, func(r *record) bool { return r.estimate.Position == p }) {
				t.Errorf("limit %d: the switch of the model at %d is gone", limit, p)
			}
		}
	}
}

// All histories together stay within the bytes allowed, however many there are.
func TestHistoriesShareABudget(t *testing.T) {
	c := Config{Classes: []string{"a", "b"}, HistoryBytesMax: 1 << 20}.withDefaults()
	s := newStore(c)
	for round := range uint64(40) {
		var list []quant.Estimate
		for _, name := range names(200) {
			list = append(list, estimate(name, "auto", round+1, 0.5))
		}
		if err := s.write(list, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, c := range s.order {
		total += len(c.series[0].history)
	}
	if total*recordBytes(2) > 1<<20 || total < 200 {
		t.Errorf("%d records of %d bytes, want at most 1 MiB", total, recordBytes(2))
	}
}

func TestCommunitiesBeyondTheLimitAreCounted(t *testing.T) {
	s := serve(t, func(c *Config) { c.CommunitiesMax = 3 })
	for range 2 {
		for _, name := range names(5) {
			write(t, s, estimate(name, "auto", 1, 0.5))
		}
	}
	if got := s.store.totals(); got.communities != 3 || got.dropped != 4 {
		t.Errorf("%d communities and %d dropped, want 3 and 4", got.communities, got.dropped)
	}
}

// Numbers that JSON cannot hold, and shares that do not fit the classes, are
// named in the error; the rest of the write is shown all the same.
func TestUnfitEstimatesAreNamed(t *testing.T) {
	s := serve(t, nil)
	good := estimate("good", "auto", 5, 0.5)
	for name, spoil := range map[string]func(*quant.Estimate){
		"nan share":    func(e *quant.Estimate) { e.Prevalence[0] = math.NaN() },
		"inf low":      func(e *quant.Estimate) { e.Low[1] = math.Inf(-1) },
		"inf high":     func(e *quant.Estimate) { e.High[1] = math.Inf(1) },
		"nan se":       func(e *quant.Estimate) { e.SE[1] = math.NaN() },
		"nan change":   func(e *quant.Estimate) { e.SEChange[1] = math.NaN() },
		"inf n":        func(e *quant.Estimate) { e.NEff[1] = math.Inf(1) },
		"inf cert":     func(e *quant.Estimate) { e.Certificate = math.Inf(1) },
		"nan lambda":   func(e *quant.Estimate) { e.Lambda = math.NaN() },
		"nan members":  func(e *quant.Estimate) { e.Members = math.NaN() },
		"nan coverage": func(e *quant.Estimate) { e.Coverage = math.NaN() },
		"one share":    func(e *quant.Estimate) { e.Prevalence = e.Prevalence[:1] },
		"no share":     func(e *quant.Estimate) { e.Prevalence = nil },
		"three shares": func(e *quant.Estimate) { e.Prevalence = []float64{1, 0, 0} },
	} {
		bad := estimate("bad "+name, "auto", 5, 0.5)
		spoil(&bad)
		err := s.Write(context.Background(), []quant.Estimate{bad, good})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", bad.Community)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if got := into[listAnswer](t, s, "/api/v1/communities"); got.Total != 1 || got.Communities[0].Name != "good" {
		t.Errorf("shown: %v", listed(got))
	}
}

// The slice belongs to the caller after Write: changing it changes nothing shown.
func TestWriteCopies(t *testing.T) {
	s := serve(t, nil)
	list := []quant.Estimate{estimate("x", "auto", 1, 0.25)}
	write(t, s, list...)
	list[0].Prevalence[1], list[0].Flags[0], list[0].Low[0] = 9, "changed", 9
	got := into[detail](t, s, "/api/v1/communities/x").Estimates[0]
	if got.Prevalence[1] != 0.25 || got.Flags[0] != "thin:1" || got.Low[0] == 9 {
		t.Errorf("shown %+v", got)
	}
}

// A community below the privacy floor has estimates that name no method. They must hide
// what was published by every method, and leave no method without a name.
func TestSuppressionIsOfEveryMethod(t *testing.T) {
	s := serve(t, nil)
	hidden := quant.Estimate{Community: "x", Position: 1, Suppressed: true, Flags: []string{"below-privacy-floor"}}
	methods := func() (names []string, suppressed int) {
		for _, e := range into[detail](t, s, "/api/v1/communities/x").Estimates {
			names = append(names, e.Method)
			if e.Suppressed {
				suppressed++
			}
		}
		return names, suppressed
	}
	write(t, s, hidden)
	if names, n := methods(); len(names) != 1 || n != 1 {
		t.Errorf("before any method: %q, %d suppressed", names, n)
	}
	write(t, s, estimate("x", "auto", 2, 0.5), estimate("x", "pcc", 2, 0.4))
	if names, n := methods(); !slices.Equal(names, []string{"auto", "pcc"}) || n != 0 {
		t.Errorf("after two methods: %q, %d suppressed", names, n)
	}
	hidden.Position = 3
	write(t, s, hidden)
	if names, n := methods(); !slices.Equal(names, []string{"auto", "pcc"}) || n != 2 {
		t.Errorf("below the floor again: %q, %d suppressed", names, n)
	}
	if row := into[listAnswer](t, s, "/api/v1/communities").Communities[0]; !row.Estimate.Suppressed || row.Plain != nil || len(row.Trend) != 0 {
		t.Errorf("the list shows %+v", row)
	}
	if got := s.store.totals(); got.series != 2 {
		t.Errorf("%d series are counted", got.series)
	}
}

// Of a suppressed community nothing is shown but that, whatever the record holds.
func TestSuppressedEstimatesAreBlanked(t *testing.T) {
	s := serve(t, nil)
	e := estimate("tiny", "auto", 3, 0.25)
	e.Suppressed, e.Flags = true, []string{"below-privacy-floor"}
	write(t, s, e)
	got := into[detail](t, s, "/api/v1/communities/tiny").Estimates[0]
	if got.Members != 0 || got.Labelled != 0 || got.Coverage != 0 || len(got.Prevalence)+len(got.Low)+len(got.NEff)+len(got.SE) != 0 {
		t.Errorf("shown: %+v", got)
	}
	if !got.Suppressed || got.Position != 3 || len(got.Flags) != 1 {
		t.Errorf("missing: %+v", got)
	}
}

// Of a method that is configured twice the page shows the first, not both as one line.
func TestAMethodThatIsConfiguredTwiceIsOneLine(t *testing.T) {
	s := serve(t, nil)
	for p := range uint64(3) {
		again := estimate("x", "acc", p+1, 0.9)
		again.Lambda = 0.5
		write(t, s, estimate("x", "acc", p+1, 0.2), estimate("x", "pcc", p+1, 0.3), again)
	}
	for _, e := range into[historyAnswer](t, s, "/api/v1/communities/x/estimates?method=acc").Estimates {
		if e.Prevalence[1] != 0.2 {
			t.Errorf("at %d: %v", e.Position, e.Prevalence)
		}
	}
}
