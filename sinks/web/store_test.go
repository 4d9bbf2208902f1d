package web

import (
	"slices"
	"testing"
	"time"

	"gqlstream/quant"
)

// However many records come, and however long they take, a list has the last day in even steps.
func TestTheLastDayIsKeptInEvenSteps(t *testing.T) {
	for _, every := range []time.Duration{
		20 * time.Millisecond, time.Second, 7 * time.Second,
		time.Hour,
	} {
		s := &series{}
		for i := range 20_000 {
			e := estimate("x", "auto", uint64(i), 0.5)
			e.Time = logStart.Add(time.Duration(i) * every).Format(time.RFC3339Nano)
			s.add(newRecord(e, time.Now()), 64)
		}
		n := len(s.past)
		last, span := s.past[n-1], min(20_000*every, day)
		if n > 64 || n < 24 || !last.at.Equal(s.latest.at) {
			t.Fatalf(
				"every %v: %d points until %v, the latest is of %v", every, n, last.at, s.latest.at,
			)
		}
		if back := last.at.Sub(s.past[0].at); back < span*9/10 || back > span+max(s.step, every) {
			t.Errorf("every %v: it reaches back %v, want %v", every, back, span)
		}
		for i := 1; i < n; i++ {
			if step := s.past[i].at.Sub(s.past[i-1].at); step > 2*max(s.step, every) || step <= 0 {
				t.Errorf("every %v: a step of %v, where %v are usual", every, step, s.step)
			}
		}
	}
	s := &series{} // of a log without times
	for i := range uint64(1000) {
		e := estimate("x", "auto", i+1, float64(i)/1000)
		e.Time = ""
		s.add(newRecord(e, time.Now()), 64)
	}
	if list := s.trend(1, 5); len(list) != 5 || !slices.IsSorted(list) || len(s.past) > 64 {
		t.Errorf("without times: %v of %d", list, len(s.past))
	}
}

// News of the day begin after the warm-up, also while the present interval is wide because opinions
// move: a wide interval of now must not make the first estimates look settled.
func TestNewsBeginAfterTheWarmUp(t *testing.T) {
	s := &series{}
	for i, p := range []struct{ share, se, lag float64 }{
		{0.9, 0.3, 0}, {0.5, 0.05, 0}, {0.52, 0.2, 0.194},
	} {
		e := estimate("x", "auto", uint64(i+1), p.share)
		e.Time = logStart.Add(time.Duration(i) * time.Hour).Format(time.RFC3339Nano)
		e.SE = []float64{p.se, p.se}
		if p.lag > 0 {
			e.SELag = []float64{p.lag, p.lag}
		}
		s.add(newRecord(e, time.Now()), 64)
	}
	m, ok := s.dayChange(0)
	if want := logStart.Add(time.Hour); !ok || !m.Since.Equal(want) {
		t.Errorf("news since %v, want %v", m.Since, want)
	}
}

// All series together stay within the bytes allowed, however many there are.
func TestSeriesShareABudget(t *testing.T) {
	for _, n := range []int{1, 1000, 100_000, 1_000_000} {
		if limit := pastLimit(n, 2); limit > pastMax ||
			limit > 2 && limit*n*(pointBytes+16) > pastBytesMax {
			t.Errorf("%d series keep %d points each", n, limit)
		}
	}
}

func TestCommunitiesBeyondTheLimitAreCounted(t *testing.T) {
	s := serve(t, func(c *Config) { c.CommunitiesMax = 3 })
	for range 2 {
		for _, name := range names(5) {
			write(t, s, estimate(name, "auto", 1, 0.5))
		}
	}
	if n, _ := s.store.totals(); n != 3 || s.store.dropped != 4 {
		t.Errorf("%d communities and %d dropped, want 3 and 4", n, s.store.dropped)
	}
}

// Estimates with shares that do not fit the classes must be left out and counted; the rest
// of the write must be shown.
func TestEstimatesOfOtherClassesAreLeftOut(t *testing.T) {
	s := serve(t, nil)
	good := estimate("good", "auto", 5, 0.5)
	for name, shares := range map[string][]float64{
		"one share": {1}, "no share": nil,
		"three shares": {1, 0, 0},
	} {
		bad := estimate("bad "+name, "auto", 5, 0.5)
		bad.Prevalence = shares
		write(t, s, bad, good)
	}
	if got := into[listAnswer](t, s, "/api/v1/communities"); got.Total != 1 ||
		got.Communities[0].Name != "good" {
		t.Errorf("shown: %v", listed(got))
	}
	if got := scrape(t, s)["gqlstream_web_estimates_dropped_total"]; got != "3" {
		t.Errorf("%s are counted, want 3", got)
	}
}

// A community below the privacy floor has estimates that name no method. They must hide the
// records of every method, and leave no method without a name.
func TestSuppressionIsOfEveryMethod(t *testing.T) {
	s := serve(t, nil)
	hidden := quant.Estimate{
		Community:  "x",
		Position:   1,
		Suppressed: true,
		Flags:      []string{"below-privacy-floor"},
	}
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
	if row := into[listAnswer](t, s,
		"/api/v1/communities").Communities[0]; !row.Estimate.Suppressed ||
		row.Plain != nil ||
		len(row.Trend) != 0 {
		t.Errorf("the list shows %+v", row)
	}
	if n := s.store.newest.Len(); n != 2 {
		t.Errorf("%d series are counted", n)
	}
}

// Of a suppressed community only its suppression is shown, whatever the record holds.
func TestSuppressedEstimatesAreBlanked(t *testing.T) {
	s := serve(t, nil)
	e := estimate("tiny", "auto", 3, 0.25)
	e.Suppressed, e.Flags = true, []string{"below-privacy-floor"}
	write(t, s, e)
	got := into[detail](t, s, "/api/v1/communities/tiny").Estimates[0]
	if got.Members != 0 || got.Labelled != 0 || got.Coverage != 0 ||
		len(got.Prevalence)+len(got.Low)+len(got.NEff)+len(got.SE) != 0 {
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
	for _, e := range into[historyAnswer](t, s,
		"/api/v1/communities/x/estimates?method=acc").Estimates {
		if e.Prevalence[1] != 0.2 {
			t.Errorf("at %d: %v", e.Position, e.Prevalence)
		}
	}
}
