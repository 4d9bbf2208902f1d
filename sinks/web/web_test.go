package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gqlstream/incremental/ask"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var logStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// logs are the output logs of the servers of serve.
var logs sync.Map

// serve starts a server with two classes on a free port; it ends with the test.
func serve(t testing.TB, change func(*Config)) *Server {
	t.Helper()
	c := Config{
		HTTP: HTTP{
			Listen: "127.0.0.1:0",
		}, Classes: []string{"no", "yes"}, Pipeline: "test", Version: "v0",
	}
	log := &webtest.Log{}
	c.Records, c.InForce, c.Quarantine = log.Read, log.InForce, someEntries
	c.Rollups = func(context.Context, sinks.RollupQuery) (sinks.RollupAnswer,
		error,
	) {
		return sinks.RollupAnswer{}, nil
	}
	c.Explain = func(context.Context, ExplainQuery, func(string)) (*quant.Explanation, error) {
		return nil, refuse(409, "nothing is explained here")
	}
	c.Ask = func(ask.Question) (*ask.Answer, error) {
		return nil,
			errors.New("there is no checkpoint yet")
	}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	logs.Store(s, log)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// estimate returns an estimate with a share of class 1, at a position that is also the
// second of its log time.
func estimate(community, method string, position uint64, share float64) quant.Estimate {
	return quant.Estimate{
		Pipeline: "test", Community: community, Position: position, Method: method,
		Time:   logStart.Add(time.Duration(position) * time.Second).Format(time.RFC3339Nano),
		Kernel: "ppr", Preset: "density", Lambda: 0.9, ModelVersion: "m1", Members: 100,
		Labelled: 7, Coverage: 1,
		Prevalence: []float64{1 - share, share},
		Low: []float64{
			max(0, 0.9-share),
			max(0, share-0.1),
		}, High: []float64{min(1, 1.1-share), min(1, share+0.1)},
		SE: []float64{
			0.05,
			0.05,
		}, SEChange: []float64{0.01, 0.01}, NEff: []float64{40, 50}, Confidence: 0.9,
		Certificate: 0.003, Flags: []string{"thin:1"}, Config: "abc", Variance: "exact", Gamma: 0.5,
	}
}

func write(t testing.TB, s *Server, estimates ...quant.Estimate) {
	t.Helper()
	if log, ok := logs.Load(s); ok {
		log.(*webtest.Log).Add(estimates...)
	}
	s.Write(estimates)
}

func runningStatus(steps uint64) Status {
	return Status{
		State: "running", Position: 1000 + steps, End: 1010 + steps, LogTime: &logStart,
		Steps:       steps,
		StepSeconds: .003, Stages: []Stage{{"apply", .001}, {"solve", .002}},
		Events: map[string]uint64{
			"edge":  10 * steps,
			"label": steps,
		}, Refused: map[string]uint64{"bad-weight": 2}, Late: map[string]uint64{"label": 3},
		Mismatches: map[string]uint64{"adults": 7},
		Models: []Model{{Version: "bert-1", Drift: 0.5, Classes: []ModelClass{
			{
				Class:     "no",
				Judged:    120,
				Accuracy:  0.75,
				Brier:     0.3,
				LogScore:  0.5,
				Reference: new(0.8),
			},
		}}},
		Confusion: Confusion{
			Position: 899, Version: "bert-1", All: Counts{{90, 30}, {10, 60}},
			Communities: []CommunityConfusion{{"x", Counts{{9, 3}, {1, 6}}}},
			Periods:     []PeriodConfusion{{logStart, logStart, Counts{{90, 30}, {10, 60}}}},
		},
		Checkpoint: &Checkpoint{
			Position: 900,
			At:       time.Now().Add(-time.Minute),
			Seconds:  1,
			Bytes:    4096,
		},
		Graph: Graph{
			Vertices: 10,
			Edges:    20,
		}, Evidence: Evidence{
			Position: 899, Labels: Meeting{5, 4}, LabelsByClass: map[string]uint64{
				"left":  2,
				"right": 3,
			},
			Predictions: Meeting{9, 9}, Members: Meeting{8, 7},
		}, Fills: []Fill{{"vertices", 10, 40}, {"edges", 20, 40}},
		Quarantine: Quarantine{Entries: 3, Bytes: 30, BytesMax: 120, Removed: 5},
	}
}

// newHTTP returns a client with its own connections, which are closed with the test.
func newHTTP(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConns: 4}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// get returns the code, the headers and the body of an answer.
func get(t testing.TB, s *Server, path string) (int, http.Header, []byte) {
	t.Helper()
	reply, err := newHTTP(t).Get(s.URL() + path[1:])
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return reply.StatusCode, reply.Header, body
}

// into decodes an answer of code 200 strictly.
func into[T any](t testing.TB, s *Server, path string) T {
	t.Helper()
	code, _, body := get(t, s, path)
	if code != http.StatusOK {
		t.Fatalf("%s: code %d: %s", path, code, body)
	}
	var out T
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%s: %v: %s", path, err, body)
	}
	return out
}

// names returns n community names in order.
func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("c%05d", i)
	}
	return out
}
