package web

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gqlstream/internal/request"
	"gqlstream/quant"
)

// The headline speaks of the worst that is known, in a sentence.
func TestHeadlineIsTrue(t *testing.T) {
	now := time.Now()
	old := now.Add(-41 * 24 * time.Hour)
	running := Status{State: "running", Position: 1000, End: 1000, LogTime: &now}
	for _, c := range []struct {
		name        string
		status      Status
		sinks       []request.State
		level, want string
	}{
		{"live", running, nil, levelLive, "Live: the estimates follow the log."},
		{
			"history",
			Status{State: "replaying", Position: 12_345, End: 772_583, LogTime: &old},
			nil,
			levelBusy, "Reading history: message 12,345 of 772,583 (1 %).",
		},
		{
			"history in messages of an hour",
			Status{State: "running", Position: 371, End: 3072, LogTime: &old},
			nil,
			levelBusy, "Reading history: message 371 of 3,072 (12 %).",
		},
		{
			"behind by a few messages of an old log that grows",
			Status{State: "running", Position: 3070, End: 3072, LogTime: &old},
			nil,
			levelWarning, "Its newest event is 41 days old.",
		},
		{
			"behind, and live",
			Status{State: "running", Position: 371, End: 700, LogTime: &now},
			nil,
			levelLive, "Live: the estimates follow the log.",
		},
		{
			"old log",
			Status{State: "running", Position: 9, End: 9, LogTime: &old},
			nil,
			levelWarning, "Its newest event is 41 days old.",
		},
		{
			"log time ahead",
			Status{
				State: "running", LogAhead: 28 * time.Minute,
				Warning: "the log's time is 28m0s ahead",
			},
			nil, levelWarning, "The log's time is 28m0s ahead.",
		},
		{
			"disk full", running,
			[]request.State{{
				Name: "GQL", Condition: request.Holding, Since: now,
				Reason: "no space left",
			}},
			levelBad, "The pipeline waits for GQL: no space left. The disk or a limit",
		},
		{
			"an output fails", running,
			[]request.State{{
				Name: "parquet", Condition: request.Retrying,
				Reason: "no such directory",
			}},
			levelWarning, "Parquet fails and is tried again: no such directory.",
		},
	} {
		s := serve(t, func(conf *Config) { conf.Sinks = func() []request.State { return c.sinks } })
		s.Status(c.status)
		if got := s.headline(now); got.Level != c.level || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s: %+v, want %s: %s", c.name, got, c.level, c.want)
		}
	}
}

// Old evidence is no live estimate, and a report that does not come is said.
func TestHeadlineOfOldEvidenceAndOfSilence(t *testing.T) {
	s := serve(t, nil)
	if got := s.headline(time.Now()); got.Level != levelBusy {
		t.Errorf("before the first report: %+v", got)
	}
	now := time.Now()
	s.Status(Status{State: "running"})
	if got := s.headline(now); !strings.Contains(got.Text, "first events") {
		t.Errorf("of an empty log: %+v", got)
	}
	s.Status(Status{State: "running", Position: 1, LogTime: &now})
	e := estimate("x", "auto", 1, 0.5)
	e.Flags = []string{evidenceFlag}
	write(t, s, e, estimate("y", "auto", 1, 0.5))
	aged := now.Add(-7 * 24 * time.Hour)
	s.Status(Status{State: "running", Position: 1, LogTime: &aged})
	if got := s.headline(now).Text; strings.Contains(got, "Live") ||
		!strings.Contains(got, "7 days old. 1 of 2 communities rest on old evidence") {
		t.Errorf("of a log without events for a week: %s", got)
	}
	s.Status(Status{State: "running", Position: 1, LogTime: &now})
	if got := s.headline(now); !strings.Contains(
		got.Text,
		"1 of 2 communities rest on old evidence",
	) {
		t.Errorf("old evidence: %+v", got)
	}
	if got := s.headline(now.Add(2 * staleAfter)); got.Level != levelBad {
		t.Errorf("without a report: %+v", got)
	}
}

// The end of the log must be that of now, not of the time when the newest message was fetched.
func TestHeadlineKnowsTheEndOfTheLog(t *testing.T) {
	s := serve(t, nil)
	now := time.Now()
	old := now.Add(-41 * 24 * time.Hour)
	s.LogEnd(3072)
	s.Status(Status{State: "running", Position: 371, End: 371, LogTime: &old})
	if got := s.headline(now); !strings.Contains(got.Text, "message 371 of 3,072") {
		t.Errorf("headline %+v", got)
	}
	s.LogEnd(5000)
	got := into[statusAnswer](t, s, "/api/v1/status")
	if got.Lag != 5000-371 || got.End != 5000 {
		t.Errorf("lag %d, end %d", got.Lag, got.End)
	}
}

// The time left is the lag at the rate of the reading so far.
func TestTimeLeftOfHistory(t *testing.T) {
	begun := time.Now()
	var p pace
	s := Status{State: "replaying", Position: 1000, End: 11_000}
	p.noteStatus(&s, begun)
	s.Position = 3000
	p.noteStatus(&s, begun.Add(10*time.Second))
	if left := p.left(&s, begun.Add(10*time.Second)); left != 40*time.Second {
		t.Errorf("left %v, want 40s", left)
	}
	s.State = "running"
	p.noteStatus(&s, begun.Add(20*time.Second))
	if left := p.left(&s, begun.Add(20*time.Second)); left != 0 {
		t.Errorf("left %v of no history", left)
	}
}

// Every flag of the methods has words for a reader, and the gravest come first.
func TestEveryFlagHasReadersWords(t *testing.T) {
	rank := map[Severity]int{wrong: 0, weak: 1, information: 2}
	infos, last := flagInfos(), 0
	if len(infos) != len(quant.FlagDocs()) {
		t.Errorf("%d flags are explained, want %d", len(infos), len(quant.FlagDocs()))
	}
	for _, f := range infos {
		if f.Title == f.Name {
			t.Errorf("%s has no words for a reader", f.Name)
		}
		if rank[f.Severity] < last {
			t.Errorf("%s is %s and comes after less grave ones", f.Name, f.Severity)
		}
		last = rank[f.Severity]
	}
}

// A repeated record is no new evidence, and a community without members is not listed.
func TestListShowsChangesOfEvidenceAndHidesEmptyCommunities(t *testing.T) {
	s := serve(t, nil)
	for i := range uint64(5) {
		write(t, s, estimate("x", "auto", 10+i, 0.5), estimate("gone", "auto", 10+i, 0.5))
	}
	s.Gone(map[string]bool{"gone": true})
	var list listAnswer
	getJSON(t, s, "/api/v1/communities", &list)
	if list.Matched != 1 || list.Communities[0].Name != "x" {
		t.Fatalf("listed %+v, want x alone", list.Communities)
	}
	if want := logStart.Add(10 * time.Second); !list.Communities[0].Evident.Equal(want) {
		t.Errorf("evident since %v, want %v", list.Communities[0].Evident, want)
	}
	getJSON(t, s, "/api/v1/communities?gone=show&q=gone", &list)
	if list.Matched != 1 {
		t.Errorf("gone=show lists %d communities, want 1", list.Matched)
	}
}

// Names for people are searched like those of the log.
func TestDisplayNamesAreSearchedAndShown(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Display.Communities = map[string]string{"c17": "Northern Towns"}
	})
	write(t, s, estimate("c17", "auto", 1, 0.5), estimate("other", "auto", 1, 0.5))
	for _, q := range []string{"northern", "c17"} {
		var list listAnswer
		getJSON(t, s, "/api/v1/communities?q="+q, &list)
		if list.Matched != 1 || list.Communities[0].Name != "c17" {
			t.Errorf("%s finds %+v", q, list.Communities)
		}
	}
}

// getJSON reads an answer, which must be one.
func getJSON(t testing.TB, s *Server, path string, out any) {
	t.Helper()
	code, _, body := get(t, s, path)
	if code != 200 {
		t.Fatalf("%s: code %d: %s", path, code, body)
	}
	if err := json.Unmarshal(body, out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
