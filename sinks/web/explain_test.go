package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"gqlstream/quant"
)

// explanation is one with every optional part.
func explanation(q ExplainQuery) *quant.Explanation {
	x := &quant.Explanation{
		Community: q.Community, Method: q.Method, Classes: []string{"no", "yes"}, States: 2,
		From: quant.ExplanationEnd{
			Position: 3, Time: "2026-03-01T12:00:03Z", Estimate: estimate(q.Community, q.Method, 3,
				0.5),
			Published: []float64{0.5, 0.5}, Certificate: 0.003,
		},
		To: quant.ExplanationEnd{
			Position: 9,
			Time:     "2026-03-01T12:00:09Z",
			Estimate: estimate(q.Community, q.Method, 9, 0.6),
		},
		Causes: []quant.Cause{{
			Kind: quant.CauseEdges, Contribution: []float64{-0.1, 0.1}, Changes: 2,
			Details: []quant.Detail{{What: "new", Count: 2}},
			Largest: []quant.Effect{{Vertex: "a", Other: "b", Effect: []float64{-0.07, 0.07}}},
		}},
	}
	x.Settle()
	return x
}

const explainPath = "/api/v1/communities/x/explain?from=3&to=9"

// The question must reach the hook as it was asked, and its answer fit the schema.
func TestExplainAnswers(t *testing.T) {
	o := readOpenAPI(t)
	var asked ExplainQuery
	s := serve(t, func(c *Config) {
		c.Explain = func(
			_ context.Context, q ExplainQuery, _ func(string),
		) (*quant.Explanation, error) {
			asked = q
			return explanation(q), nil
		}
	})
	write(t, s, estimate("x", "auto", 1, 0.5), estimate("x", "pcc", 1, 0.5))
	schema := o.at(map[string]any(o), "components", "schemas", "Explanation")
	for path, want := range map[string]ExplainQuery{
		explainPath:                 {"x", "auto", "3", "9"},
		explainPath + "&method=pcc": {"x", "pcc", "3", "9"},
	} {
		code, _, body := get(t, s, path)
		if code != http.StatusOK || asked != want {
			t.Fatalf("%s: code %d, asked %+v, want %+v: %s", path, code, asked, want, body)
		}
		o.fits(t, path, schema, body)
	}
	for _, kind := range asList(o.at(schema, "properties", "causes", "items", "properties",
		"kind")["enum"]) {
		if !knownCause(kind.(string)) {
			t.Errorf("%v is documented and no cause", kind)
		}
	}
}

func knownCause(kind string) bool {
	switch kind {
	case quant.CauseJoined,
		quant.CauseLeft, quant.CauseAge, quant.CauseAttributes,
		quant.CausePredictions,
		quant.CauseModel,
		quant.CauseLabels,
		quant.CauseEdges,
		quant.CauseCoefficients,
		quant.CauseGamma, quant.CauseFew:
		return true
	}
	return false
}

// The status must show how far an explanation has come, and nothing once it is made.
func TestExplainShowsItsProgress(t *testing.T) {
	reported, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(c *Config) {
		c.Explain = func(
			_ context.Context, q ExplainQuery, report func(string),
		) (*quant.Explanation, error) {
			report("reading the log, 40 %")
			close(reported)
			<-release
			return explanation(q), nil
		}
	})
	write(t, s, estimate("x", "auto", 1, 0.5))
	shown := func() string {
		var status struct{ Explaining string }
		if _, _, body := get(t, s, "/api/v1/status"); json.Unmarshal(body, &status) != nil {
			t.Fatalf("%s", body)
		}
		return status.Explaining
	}
	done := make(chan int)
	go func() {
		code, _, _ := get(t, s, explainPath)
		done <- code
	}()
	<-reported
	if now := shown(); now != "reading the log, 40 %" {
		t.Errorf("the status shows %q", now)
	}
	close(release)
	if code := <-done; code != http.StatusOK || shown() != "" {
		t.Errorf("code %d, and the status shows %q", code, shown())
	}
}

// A question without an answer must be refused with the reason and the right code.
func TestExplainRefuses(t *testing.T) {
	var result error
	s := serve(t, func(c *Config) {
		c.Explain = func(context.Context, ExplainQuery, func(string)) (*quant.Explanation, error) {
			return nil,
				result
		}
	})
	write(t, s, estimate("x", "auto", 1, 0.5))
	for _, c := range []struct {
		path   string
		result error
		want   int
	}{
		{"/api/v1/communities/x/explain", nil, 400},
		{"/api/v1/communities/x/explain?from=3", nil, 400},
		{"/api/v1/communities/x/explain?from=3&to=9&named=5", nil, 400},
		{"/api/v1/communities/y/explain?from=3&to=9", nil, 404},
		{explainPath + "&method=cc", nil, 404},
		{explainPath + "4", &Refusal{404, "not there"}, 404},
		{explainPath + "5", &Refusal{400, "no place"}, 400},
		{explainPath + "6", errors.New("secret"), 503},
	} {
		result = c.result
		code, _, body := get(t, s, c.path)
		if code != c.want || len(body) == 0 || strings.Contains(string(body), "secret") {
			t.Errorf("%s with %v: code %d, want %d: %s", c.path, c.result, code, c.want, body)
		}
	}
}

// One explanation at a time is made, a few wait, and the others are refused, over HTTP and
// NATS. A caller who goes away gives its turn to the next.
func TestExplainTakesTurns(t *testing.T) {
	var running, most atomic.Int32
	entered, release := make(chan struct{}, 100), make(chan struct{})
	s := serve(t, func(c *Config) {
		c.Explain = func(
			ctx context.Context, q ExplainQuery, _ func(string),
		) (*quant.Explanation, error) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			entered <- struct{}{}
			select {
			case <-release:
				return explanation(q), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	write(t, s, estimate("x", "auto", 1, 0.5))
	connect := startNATS(t)
	answerOn(t, s, connect())
	nc := connect()
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+explainPath[1:], nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error)
	go func() {
		_, err := newHTTP(t).Do(request) //nolint:bodyclose // it fails
		gone <- err
	}()
	<-entered
	const asked = 2 * (1 + explainQueueMax)
	codes := make(chan string, asked)
	for i := range asked {
		go func() {
			if i%2 == 0 {
				reply, err := newHTTP(t).Get(s.URL() + explainPath[1:])
				if err != nil {
					t.Error(err)
					codes <- err.Error()
					return
				}
				reply.Body.Close()
				codes <- reply.Status[:3]
				return
			}
			m, err := nc.Request(
				"gqlest.query.explain",
				[]byte(`{"community":"x","from":3,"to":9}`),
				time.Minute,
			)
			if err != nil {
				codes <- err.Error()
				return
			}
			codes <- cmp.Or(m.Header.Get(micro.ErrorCodeHeader), "200")
		}()
	}
	count := map[string]int{}
	for range asked - explainQueueMax { // which find all places taken
		count[<-codes]++
	}
	leave()
	if err := <-gone; err == nil {
		t.Error("who went got an answer")
	}
	<-entered
	close(release)
	for range explainQueueMax {
		count[<-codes]++
	}
	if count["503"] != asked-explainQueueMax || count["200"] != explainQueueMax {
		t.Errorf("codes %v", count)
	}
	if most.Load() != 1 {
		t.Errorf("%d explanations were made at a time", most.Load())
	}
}
