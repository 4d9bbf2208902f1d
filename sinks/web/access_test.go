package web

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gqlstream/ingest"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// rows reads an answer in CSV.
func rows(t testing.TB, s *Server, path string) [][]string {
	t.Helper()
	code, header, body := get(t, s, path)
	if code != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/csv") {
		t.Fatalf("%s: %d %s %s", path, code, header.Get("Content-Type"), body)
	}
	out, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out
}

// The list, one community and its history must hold the same figures as CSV, a row for
// each class; hostile names come back from a reader of CSV as they were.
func TestEstimatesAreReadAsCSV(t *testing.T) {
	s := serve(t, nil)
	name := "a,\"b\"\n=1+1"
	plain := estimate(name, "pcc", 2, 0.3)
	plain.Low, plain.High = nil, nil
	second := estimate(name, "auto", 2, 0.25)
	second.Moved, second.Revised = []float64{0.2, -0.2}, []float64{0.05, -0.05}
	write(t, s, estimate(name, "auto", 1, 0.5))
	write(
		t, s, second, plain, quant.Estimate{Community: "hidden", Method: "auto", Suppressed: true},
	)
	at := func(n int) string {
		return logStart.Add(time.Duration(n) * time.Second).Format(time.RFC3339Nano)
	}
	latest := [][]string{
		csvHead,
		{at(2), name, "no", "0.75", "0.65", "0.8500000000000001", "auto", "0.2", "0.05"},
		{at(2), name, "yes", "0.25", "0.15", "0.35", "auto", "-0.2", "-0.05"},
	}
	for path, want := range map[string][][]string{
		"/api/v1/communities?format=csv": latest,
		"/api/v1/communities/" + url.PathEscape(name) + "?format=csv": append(latest[:3:3],
			[]string{at(2), name, "no", "0.7", "", "", "pcc", "", ""},
			[]string{at(2), name, "yes", "0.3", "", "", "pcc", "", ""}),
		"/api/v1/communities/" + url.PathEscape(name) + "/estimates?format=csv&limit=all": append(
			[][]string{
				csvHead,
				{at(1), name, "no", "0.5", "0.4", "0.6000000000000001", "auto", "", ""},
				{at(1), name, "yes", "0.5", "0.4", "0.6", "auto", "", ""},
			}, latest[1:]...),
	} {
		if diff := cmp.Diff(want, rows(t, s, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// Ten thousand rows come at once, and all of them where that is asked for.
func TestLargePagesAreComplete(t *testing.T) {
	s := serve(t, nil)
	var list []quant.Estimate
	for i := range 10_100 {
		list = append(list, estimate(fmt.Sprint("c", i), "auto", 1, 0.5))
	}
	write(t, s, list...)
	for query, want := range map[string]int{
		"limit=10000": 10_000, "limit=all": 10_100,
		"limit=all&flag=thin": 10_100, "limit=all&flag=shift": 0,
	} {
		if got := into[listAnswer](t, s, "/api/v1/communities?"+query); len(
			got.Communities,
		) != want {
			t.Errorf("%s gave %d rows, want %d", query, len(got.Communities), want)
		}
	}
	for range largePagesMax {
		s.pages <- struct{}{}
	}
	if code, header, _ := get(t, s, "/api/v1/communities?limit=1001"); code != 503 ||
		header.Get("Retry-After") == "" {
		t.Errorf("one large page too many: %d", code)
	}
	if code, _, _ := get(t, s, "/api/v1/communities?limit=1000"); code != 200 {
		t.Errorf("a small page beside large ones: %d", code)
	}
}

func TestNamesAreInNaturalOrder(t *testing.T) {
	s := serve(t, nil)
	want := []string{
		"",
		"1",
		"01",
		"2",
		"a",
		"a 2 b 9",
		"a 2 b 10",
		"B-1",
		"b-2",
		"b-10",
		"b-10x",
		"c18446744073709551617",
		"c18446744073709551618",
		"é",
	}
	for i := range want {
		write(t, s, estimate(want[(i*5+3)%len(want)], "auto", 1, 0.5))
	}
	got := listed(into[listAnswer](t, s, "/api/v1/communities"))
	want[1], want[2] = "01", "1" // the same number: in byte order
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// The movers of a day are compared with the record a day before, or with the oldest that rests on a
// label: before that nothing was known that could have moved.
func TestMoversOfTheDay(t *testing.T) {
	s := serve(t, nil)
	hour := func(n int) uint64 { return uint64(3600*n + 1) }
	for n := range 49 {
		write(
			t, s, estimate("slow", "auto", hour(n), 0.01*float64(n)),
			estimate("still", "auto", hour(n), 0.5),
		)
	}
	write(
		t, s, estimate("young", "auto", hour(48), 0.9), estimate("young", "auto", hour(49), 0.3),
		estimate("new", "auto", hour(49), 0.9),
	)
	blind := estimate("unlabelled", "auto", hour(48), 0.5)
	blind.Flags = []string{quant.FlagNoLabels}
	write(t, s, blind)
	blind.Position++
	write(
		t, s, blind, estimate("unlabelled", "auto", hour(48)+2, 0.9),
		estimate("unlabelled", "auto", hour(49), 0.8),
	)
	got := into[listAnswer](t, s, "/api/v1/communities?sort=change&order=desc&class=1")
	if diff := cmp.Diff([]string{"young", "slow", "unlabelled", "still", "new"},
		listed(got)); diff != "" {
		t.Fatalf("order (-want +got):\n%s", diff)
	}
	for i, want := range []float64{-0.6, 0.24, -0.1, 0} {
		if row := got.Communities[i]; row.Change == nil || *row.Change-want > 1e-9 ||
			want-*row.Change > 1e-9 {
			t.Errorf("%s moved by %v, want %v", row.Name, row.Change, want)
		}
	}
	if since := got.Communities[1].Since; since == nil ||
		!since.Equal(logStart.Add(24*time.Hour+time.Second)) {
		t.Errorf("slow is compared with %v", since)
	}
	if got.Communities[4].Change != nil {
		t.Errorf("a community with one record moved by %v", *got.Communities[4].Change)
	}
}

// After a restart only the latest records are in memory. The changes of the last day must come from
// the hourly roll-ups. Roll-ups of later times must not count.
func TestMoversOfTheDayAfterARestart(t *testing.T) {
	const hours = 60
	share := func(n int) float64 { return math.Abs(math.Sin(float64(n))) }
	at := func(n int) time.Time { return logStart.Add(time.Duration(n) * time.Hour) }
	of := func(name string, n int) quant.Estimate {
		return estimate(name, "auto", uint64(3600*n),
			share(n))
	}
	var day []sinks.Rollup
	live := serve(t, nil)
	for n := range hours {
		write(t, live, of("x", n))
		if n == hours-25 { // there were other classes
			day = append(day, sinks.Rollup{Until: at(n).Add(-time.Minute), Last: []float64{1}})
		}
		day = append(day, sinks.Rollup{Until: at(n), Last: []float64{1 - share(n), share(n)}})
	}
	const query = "/api/v1/communities?sort=change&order=desc&class=1&trend=6"
	want := into[listAnswer](t, live, query).Communities[0]
	s := serve(t, nil)
	s.Load([]quant.Estimate{of("x", hours-1), of("y", hours-1)})
	s.Recall("x", "auto", append(day, sinks.Rollup{Until: at(hours), Last: []float64{1, 0}}))
	s.Recall("x", "pcc", day)
	s.Recall("gone", "auto", day)
	s.Recall("y", "auto", nil)
	list := into[listAnswer](t, s, query).Communities
	got := list[0]
	if got.Name != "x" || got.Change == nil || math.Abs(*got.Change-*want.Change) > 1e-6 ||
		!got.Since.Equal(*want.Since) {
		t.Errorf(
			"%s moved by %v since %v, want %v since %v", got.Name, got.Change, got.Since,
			*want.Change, *want.Since,
		)
	}
	if len(list) != 2 || list[1].Change != nil || list[1].Trend != nil {
		t.Errorf("what no roll-up tells of moved: %+v", list)
	}
	next := hours - 25 // a trend is in the order of time
	for _, x := range got.Trend {
		for next < hours && math.Abs(share(next)-x) > 1e-6 {
			next++
		}
	}
	if len(got.Trend) != 6 || math.Abs(got.Trend[0]-share(hours-25)) > 1e-6 || next != hours-1 {
		t.Errorf("the trend is %v", got.Trend)
	}
}

func someEntries(_ context.Context, reason string, limit int) ([]QuarantineEntry, error) {
	if reason == "broken" {
		return nil, errors.New("no connection")
	}
	return []QuarantineEntry{{
		QuarantineEntry: ingest.QuarantineEntry{
			Sequence: 17,
			Time:     logStart,
			Kind:     "label",
			Reason:   "bad-class",
			Detail:   "class 7 of 2",
			Position: 5,
			Index:    -1,
			Bytes:    9,
		},
		Original: reason + fmt.Sprint(limit),
	}}, nil
}

func TestQuarantineIsShown(t *testing.T) {
	s := serve(t, func(c *Config) { c.Quarantine = someEntries })
	got := into[map[string][]QuarantineEntry](t, s,
		"/api/v1/quarantine?reason=bad-class&limit=3")["entries"]
	if len(got) != 1 || got[0].Sequence != 17 || got[0].Original != "bad-class3" {
		t.Errorf("entries %+v", got)
	}
	if code, header, body := get(t, s, "/api/v1/quarantine?reason=broken"); code != 503 ||
		header.Get("Retry-After") == "" ||
		strings.Contains(string(body), "connection") {
		t.Errorf("a quarantine that cannot be read: %d %s", code, body)
	}
}

// A long step must report its task, must not count as stalled meanwhile, and must be
// forgotten when the run loop reports again.
func TestLongStepsNameTheirTask(t *testing.T) {
	s := serve(t, nil)
	s.Progress("reading the checkpoint", 0)
	if got := into[statusAnswer](t, s,
		"/api/v1/status"); got.Progress != "reading the checkpoint" ||
		got.Ready ||
		got.Pushed != nil {
		t.Errorf("before the first step: %+v", got)
	}
	s.Status(runningStatus(1))
	if got := into[statusAnswer](t, s, "/api/v1/status"); got.Progress != "" {
		t.Errorf("after a step: %q", got.Progress)
	}
	s.journal.mu.Lock()
	s.journal.at = time.Now().Add(-2 * staleAfter)
	s.journal.mu.Unlock()
	if ready, why := s.ready(time.Now()); ready || why != "stalled" {
		t.Errorf("a silent loop is %v, %s", ready, why)
	}
	s.Progress("solving 12 of 160 communities", 0)
	if got := into[statusAnswer](t, s, "/api/v1/status"); got.Progress != "solving 12 of 160 "+
		"communities" {
		t.Errorf("during a step: %q", got.Progress)
	}
	if ready, why := s.ready(time.Now()); !ready {
		t.Errorf("a step that reports is %s", why)
	}
}

// Messages that are published during a long step must count as lag: the loop itself reports
// the end of the stream only with a step.
func TestLagGrowsDuringALongStep(t *testing.T) {
	s := serve(t, nil)
	s.Status(runningStatus(1)) // at position 1001, 10 behind
	// 0: the broker does not answer
	for end, want := range map[uint64]string{5001: "4000", 0: "4000"} {
		s.Progress("a long step", 5001)
		s.Progress("a long step", end)
		if got := scrape(t, s)["gqlstream_lag_messages"]; got != want {
			t.Errorf("%s messages behind, want %s", got, want)
		}
	}
	s.Status(runningStatus(2))
	if got := scrape(t, s)["gqlstream_lag_messages"]; got != "10" {
		t.Errorf("%s messages behind after the step, want 10", got)
	}
}
