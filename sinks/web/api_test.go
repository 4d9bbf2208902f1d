package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gqlstream/quant"
	"gqlstream/sinks"
)

// three fills a server with three communities of different shares and sizes.
func three(t testing.TB, s *Server) {
	a, b, c := estimate("Alpha", "auto", 1, 0.5), estimate("beta", "auto", 1, 0.2), estimate(
		"Gamma/δ", "auto", 1, 0.8,
	)
	a.Members, b.Members, c.Members = 30, 10, 20
	a.Flags, b.Flags, c.Flags = nil, []string{"thin:0", "low-coverage"}, []string{"thin:1"}
	plain := estimate("beta", "pcc", 1, 0.35)
	hidden := quant.Estimate{
		Community:  "small",
		Method:     "auto",
		Position:   1,
		Suppressed: true,
		Flags:      []string{"below-privacy-floor"},
	}
	write(t, s, a, b, plain, c, hidden)
}

func listed(a listAnswer) []string {
	out := []string{}
	for _, row := range a.Communities {
		out = append(out, row.Name)
	}
	return out
}

func TestListIsSearchedSortedAndPaged(t *testing.T) {
	s := serve(t, nil)
	three(t, s)
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"Alpha", "beta", "Gamma/δ", "small"}},
		{"?order=desc", []string{"small", "Gamma/δ", "beta", "Alpha"}},
		{"?q=A", []string{"Alpha", "beta", "Gamma/δ", "small"}},
		{"?q=ALPH", []string{"Alpha"}},
		{"?q=" + url.QueryEscape("Δ"), []string{"Gamma/δ"}},
		{"?q=nothing", []string{}},
		{"?sort=members", []string{"beta", "Gamma/δ", "Alpha", "small"}},
		{"?sort=members&order=desc", []string{"Alpha", "Gamma/δ", "beta", "small"}},
		{"?sort=share&class=1", []string{"beta", "Alpha", "Gamma/δ", "small"}},
		{"?sort=share&class=0", []string{"Gamma/δ", "Alpha", "beta", "small"}},
		{"?sort=share&class=1&order=desc", []string{"Gamma/δ", "Alpha", "beta", "small"}},
		{"?sort=flags&order=desc", []string{"beta", "Gamma/δ", "small", "Alpha"}},
		{"?sort=width&class=1", []string{"Alpha", "Gamma/δ", "beta", "small"}},
		{"?sort=updated", []string{"Alpha", "beta", "Gamma/δ", "small"}},
		{"?sort=certificate", []string{"Alpha", "beta", "Gamma/δ", "small"}},
		{"?sort=coverage", []string{"Alpha", "beta", "Gamma/δ", "small"}},
		{"?limit=2", []string{"Alpha", "beta"}},
		{"?limit=all", []string{"Alpha", "beta", "Gamma/δ", "small"}},
		{"?flag=any", []string{"beta", "Gamma/δ", "small"}},
		{"?flag=thin", []string{"beta", "Gamma/δ"}},
		{"?flag=low-coverage&q=a", []string{"beta"}},
		{"?flag=none-such", []string{}},
		{"?limit=2&offset=3", []string{"small"}},
		{"?limit=2&offset=9", []string{}},
		{"?limit=0", []string{}},
		{"?method=pcc", []string{"beta"}},
		{"?method=none", []string{}},
	} {
		got := into[listAnswer](t, s, "/api/v1/communities"+c.query)
		if diff := cmp.Diff(c.want, listed(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.query, diff)
		}
	}
	got := into[listAnswer](t, s, "/api/v1/communities?q=a&limit=1")
	if got.Total != 4 || got.Matched != 4 || got.Position != 1 {
		t.Errorf(
			"total %d matched %d position %d, want 4, 4 and 1", got.Total, got.Matched,
			got.Position,
		)
	}
}

func TestRowHoldsPlainCountAndTrend(t *testing.T) {
	s := serve(t, nil)
	for i := range uint64(100) {
		write(t, s, estimate("x", "auto", i+1, float64(i)/100), estimate("x", "pcc", i+1, 0.25))
	}
	got := into[listAnswer](t, s, "/api/v1/communities?trend=5&class=1")
	row := got.Communities[0]
	if diff := cmp.Diff([]float64{0.75, 0.25}, row.Plain); diff != "" {
		t.Errorf("plain (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{0, 0.24, 0.49, 0.74, 0.99}, row.Trend); diff != "" {
		t.Errorf("trend (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"auto", "pcc"}, row.Methods); diff != "" {
		t.Errorf("methods (-want +got):\n%s", diff)
	}
	if row.Estimate.Method != "auto" || row.Estimate.Position != 100 {
		t.Errorf("row shows %s at %d, want auto at 100", row.Estimate.Method, row.Estimate.Position)
	}
}

// The method that lists show is auto, else one that adjusts, else the first.
func TestMainMethod(t *testing.T) {
	for _, c := range []struct {
		methods []string
		want    string
	}{
		{[]string{"pcc", "auto"}, "auto"},
		{[]string{"pcc", "sis-nacc", "diff"}, "sis-nacc"},
		{[]string{"diff", "pcc", "auto"}, "auto"},
		{[]string{"pcc", "cc"}, "pcc"},
	} {
		s := serve(t, nil)
		for _, m := range c.methods {
			write(t, s, estimate("x", m, 1, 0.5))
		}
		if got := into[detail](t, s, "/api/v1/communities/x").Main; got != c.want {
			t.Errorf("of %v: %s, want %s", c.methods, got, c.want)
		}
	}
}

// The definition of a community must come with it, the last one that was said, and be
// absent where there is none.
func TestDefinitionComesWithTheCommunity(t *testing.T) {
	s := serve(t, nil)
	write(t, s, estimate("x", "auto", 1, 0.5), estimate("y", "auto", 1, 0.5))
	s.Define(map[string]string{"x": "age > 3", "y": "age > 4"})
	s.Define(map[string]string{"x": `language == "de" and age >= 18`})
	for name, want := range map[string]string{"x": `language == "de" and age >= 18`, "y": ""} {
		if got := into[detail](t, s, "/api/v1/communities/"+name).Definition; got != want {
			t.Errorf("%s is defined by %q, want %q", name, got, want)
		}
	}
}

// Communities with names that look alike must be marked, in the list and on their own
// pages.
func TestNamesThatLookAlikeAreMarked(t *testing.T) {
	s := serve(t, nil)
	alike := [][2]string{
		{"berlin", "b\u0435rlin"},
		{"Z\u00fcrich", "Zu\u0308rich"},
		{"paris", "\u0440aris"},
	}
	for _, pair := range alike {
		write(t, s, estimate(pair[0], "auto", 1, 0.5), estimate(pair[1], "auto", 1, 0.5))
	}
	write(t, s, estimate("lima", "auto", 1, 0.5), estimate("lina", "auto", 1, 0.5))
	want := map[string]string{"lima": "", "lina": ""}
	for _, pair := range alike {
		want[pair[0]], want[pair[1]] = pair[1], pair[0]
	}
	for _, row := range into[listAnswer](t, s, "/api/v1/communities?limit=all").Communities {
		if row.Looks != want[row.Name] {
			t.Errorf("%q looks like %q, want %q", row.Name, row.Looks, want[row.Name])
		}
		if got := into[detail](t, s, "/api/v1/communities/"+
			url.PathEscape(row.Name)).LooksLike; got != row.Looks {
			t.Errorf("%q by itself looks like %q", row.Name, got)
		}
	}
}

// A table for people must hold no cell that a spreadsheet takes for a formula, since any
// publisher of members can name a community.
func TestTablesHoldNoFormulas(t *testing.T) {
	s := serve(t, nil)
	for _, name := range []string{"=1+1", "+1", "-1", "@sum(a1)", "\ta", "plain"} {
		write(t, s, estimate(name, "auto", 1, 0.5))
	}
	got := map[string]bool{}
	for _, row := range rows(t, s, "/api/v1/communities?format=csv&limit=all")[1:] {
		got[row[1]] = true
		if strings.ContainsAny(row[1][:1], "=+-@\t") {
			t.Errorf("a cell begins a formula: %q", row[1])
		}
	}
	if !got["'=1+1"] || !got["plain"] || len(got) != 6 {
		t.Errorf("the communities are %v", got)
	}
}

// Names are hostile: each must come back from its own address, unchanged.
func TestEveryNameHasAnAddress(t *testing.T) {
	s := serve(t, nil)
	for _, name := range append(hostileNames(), "a/b", "a//b", "../x", "a/../b", "%2F", "a?b=c",
		"a#b", "a b", "ü", "\\", ":", "a%00") {
		write(t, s, estimate(name, "auto", 1, 0.5))
		got := into[detail](t, s, "/api/v1/communities/"+url.PathEscape(name))
		if got.Name != name || got.Estimates[0].Community != name {
			t.Errorf("%q came back as %q", name, got.Name)
		}
		history := into[historyAnswer](
			t,
			s,
			"/api/v1/communities/"+url.PathEscape(name)+"/estimates",
		)
		if history.Community != name || len(history.Estimates) != 1 {
			t.Errorf(
				"%q has history of %q with %d", name, history.Community, len(history.Estimates),
			)
		}
	}
}

func positions(list []quant.Estimate) []uint64 {
	out := []uint64{}
	for _, e := range list {
		out = append(out, e.Position)
	}
	return out
}

func TestHistoryIsCutByTimeAndLimit(t *testing.T) {
	s := serve(t, nil)
	for i := range uint64(10) {
		write(t, s, estimate("x", "auto", i+1, 0.5))
	}
	at := func(seconds int) string {
		return url.QueryEscape(
			logStart.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339Nano),
		)
	}
	unix := func(seconds int) string { return fmt.Sprint(logStart.Unix() + int64(seconds)) }
	for _, c := range []struct {
		query     string
		want      []uint64
		truncated bool
	}{
		{"", []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false},
		{"?from=" + at(8), []uint64{8, 9, 10}, false},
		{"?to=" + at(2), []uint64{1, 2}, false},
		{"?from=" + unix(3) + "&to=" + unix(5), []uint64{3, 4, 5}, false},
		{"?from=" + unix(3) + ".5&to=" + unix(5) + ".5", []uint64{4, 5}, false},
		{"?from=" + unix(20), []uint64{}, false},
		{"?from=" + unix(5) + "&to=" + unix(3), []uint64{}, false},
		{"?limit=2", []uint64{9, 10}, true},
		{"?method=auto&limit=10", []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false},
	} {
		got := into[historyAnswer](t, s, "/api/v1/communities/x/estimates"+c.query)
		if diff := cmp.Diff(c.want, positions(got.Estimates)); diff != "" ||
			got.Truncated != c.truncated {
			t.Errorf(
				"%s: truncated %v, want %v (-want +got):\n%s", c.query, got.Truncated, c.truncated,
				diff,
			)
		}
	}
}

// The answer must say that records are missing, but not why the output log cannot be read.
func TestRecordsOfTheOutputLogMayBeMissing(t *testing.T) {
	var asked sinks.RecordsQuery
	var fails error
	other := estimate("x", "auto", 4, 0.5)
	other.Prevalence = []float64{1, 0, 0} // of other classes
	s := serve(t, func(c *Config) {
		c.Records = func(_ context.Context, q sinks.RecordsQuery) ([]quant.Estimate, bool, error) {
			asked = q
			return []quant.Estimate{estimate("x", "auto", 3, 0.5), other}, false, fails
		}
	})
	write(t, s, estimate("x", "auto", 4, 0.5))
	got := into[historyAnswer](
		t,
		s,
		"/api/v1/communities/x/estimates?limit=2&from="+fmt.Sprint(logStart.Unix()),
	)
	want := sinks.RecordsQuery{Community: "x", Method: "auto", From: logStart.Local()}
	if diff := cmp.Diff([]uint64{3}, positions(got.Estimates)); diff != "" || !got.Truncated ||
		!asked.From.Equal(want.From) {
		t.Errorf("asked %v, truncated %v: %s", asked, got.Truncated, diff)
	}
	fails = errors.New("the store is away")
	if code, _, body := get(t, s,
		"/api/v1/communities/x/estimates"); code != http.StatusServiceUnavailable ||
		strings.Contains(string(body), "away") {
		t.Errorf("a store that fails gave %d: %s", code, body)
	}
}

func TestMistakesInRequestsAreExplained(t *testing.T) {
	s := serve(t, nil)
	three(t, s)
	for _, c := range []struct {
		path string
		code int
	}{
		{"/api/v1/communities/nobody", 404},
		{"/api/v1/communities/nobody/estimates", 404},
		{"/api/v1/communities/Alpha/estimates?method=none", 404},
		{"/api/v1/communities/Alpha/estimates?from=yesterday", 400},
		{"/api/v1/communities/Alpha/estimates?to=NaN", 400},
		{"/api/v1/communities/Alpha/estimates?to=-1", 400},
		{"/api/v1/communities/Alpha/estimates?to=1e300", 400},
		{"/api/v1/communities/Alpha/estimates?limit=0", 400},
		{"/api/v1/communities/Alpha/estimates?limit=", 400},
		{"/api/v1/communities/Alpha/estimates?limit=10001", 400},
		{"/api/v1/communities/Alpha/explain", 400},
		{"/api/v1/communities/Alpha?format=xml", 400},
		{"/api/v1/quarantine?limit=101", 400},
		{"/api/v1/communities?sort=colour", 400},
		{"/api/v1/communities?order=up", 400},
		{"/api/v1/communities?class=2", 404},
		{"/api/v1/communities?class=-1", 400},
		{"/api/v1/communities?limit=10001", 400},
		{"/api/v1/communities?limit=x", 400},
		{"/api/v1/communities?offset=-1", 400},
		{"/api/v1/communities?trend=61", 400},
		{"/api/v1/communities?limit=1&limit=2", 400},
		{"/api/v1/communities?q=" + strings.Repeat("x", 257), 400},
		{"/api/v1/communities?callback=alert", 400},
		{"/api/v1/communities?q=%zz", 400},
		{"/api/v1/communities?q=1;2", 400},
		{"/api/v1/status?history=true", 400},
		{"/api/v1/estimates?after=-1", 400},
		{"/api/v1/estimates?after=x", 400},
		{"/api/v1/estimates?" + manyNames(65), 400},
		{"/api/v1/", 404},
		{"/api", 404},
		{"/nothing", 404},
	} {
		code, header, body := get(t, s, c.path)
		if code != c.code || !strings.HasPrefix(string(body), `{"error":"`) ||
			header.Get("Content-Type") != "application/json" {
			t.Errorf(
				"%s: %d %s %s, want %d and an error in JSON", c.path, code,
				header.Get("Content-Type"), body, c.code,
			)
		}
	}
}

func manyNames(n int) string {
	v := url.Values{}
	for _, name := range names(n) {
		v.Add("community", name)
	}
	return v.Encode()
}

func TestReadinessFollowsTheRunLoop(t *testing.T) {
	s := serve(t, nil)
	check := func(code int, want string) {
		t.Helper()
		got, _, body := get(t, s, "/readyz")
		if got != code || strings.TrimSpace(string(body)) != want {
			t.Errorf("readyz: %d %q, want %d %q", got, body, code, want)
		}
	}
	check(503, "starting")
	s.Status(Status{State: "replaying"})
	check(503, "not running")
	s.Status(runningStatus(1))
	check(200, "ready")
	warned := runningStatus(1)
	warned.Warning, warned.LogAhead = "the log's time is 1h0m0s ahead, because a clock leapt",
		time.Hour
	s.Status(warned)
	check(200, "ready, but "+warned.Warning)
	got := scrape(t, s)
	for metric, want := range map[string]string{
		"gqlstream_log_ahead_seconds":                 "3600",
		`gqlstream_limit_used_ratio{what="vertices"}`: "0.25",
		"gqlstream_quarantine_used_ratio":             "0.25",
		"gqlstream_quarantine_removed_total":          "5",
	} {
		if got[metric] != want {
			t.Errorf("%s is %s, want %s", metric, got[metric], want)
		}
	}
	s.Status(runningStatus(1))
	s.journal.mu.Lock()
	s.journal.at = s.journal.at.Add(-staleAfter - time.Second)
	s.journal.mu.Unlock()
	check(503, "stalled")
	if code, _, body := get(t, s, "/healthz"); code != 200 || string(body) != "ok\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
}

// The durations of a step must be counted once, however often its status is repeated.
func TestDurationsOfAStepAreCountedOnce(t *testing.T) {
	s := serve(t, nil)
	s.Status(Status{State: "replaying"})
	for _, steps := range []uint64{1, 1, 2, 2, 2} {
		s.Status(runningStatus(steps))
	}
	got := scrape(t, s)
	if n, stage := got["gqlstream_step_seconds_count"],
		got[`gqlstream_stage_seconds_count{stage="solve"}`]; n != "2" ||
		stage != "2" {
		t.Errorf("%s steps and %s stages are counted, want 2", n, stage)
	}
}

func TestInfoListsClassesAndFlags(t *testing.T) {
	s := serve(t, nil)
	got := into[info](t, s, "/api/v1/info")
	if !slices.Equal(got.Classes, []string{"no", "yes"}) ||
		len(got.Flags) != len(quant.FlagDocs()) ||
		got.Pipeline != "test" {
		t.Errorf("info %+v", got)
	}
}
