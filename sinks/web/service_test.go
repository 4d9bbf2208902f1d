package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"gqlstream/quant"
	"gqlstream/sinks"
)

// startNATS returns connections to a server of the test's own.
func startNATS(t *testing.T) (connect func() *nats.Conn) {
	t.Helper()
	ns, err := server.NewServer(
		&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return func() *nats.Conn {
		nc, err := nats.Connect(ns.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
}

// answerOn returns when the NATS server knows that s answers: a subscription is written
// to the server after the call that made it.
func answerOn(t *testing.T, s *Server, nc *nats.Conn) (stop func() error) {
	t.Helper()
	stop, err := s.AnswerOn(nc, "gqlest.query")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return stop
}

// someRollups answers with two hours.
func someRollups(_ context.Context, q sinks.RollupQuery) (sinks.RollupAnswer, error) {
	answer := sinks.RollupAnswer{Resolution: "hour"}
	for i := range 3 {
		begin := logStart.Add(time.Duration(i) * time.Hour)
		answer.Rollups = append(answer.Rollups, sinks.Rollup{
			Time: begin, Until: begin.Add(time.Minute), Position: uint64(i + 1), Count: 2,
			Last: []float64{
				0.3,
				0.7,
			}, Mean: []float64{0.2, 0.8}, Low: []float64{0.1, 0.6}, High: []float64{0.4, 0.9},
			Flags: []string{"thin:1"},
		})
	}
	return answer, nil
}

// HTTP and NATS must give the same answers byte for byte, whichever of two processes
// answers.
func TestQuestionsOnNATSAreAnsweredAsOnHTTP(t *testing.T) {
	connect := startNATS(t)
	explain := func(context.Context, ExplainQuery, func(string)) (*quant.Explanation, error) {
		return nil, &Refusal{Code: http.StatusConflict, Message: "it did not move"}
	}
	s := serve(t, func(c *Config) { c.Rollups, c.Explain = someRollups, explain })
	write(
		t, s, estimate("Lyon cycling", "auto", 1, 0.5), estimate("Lyon cycling", "auto", 2, 0.6),
		estimate("b", "auto", 2, 0.1),
	)
	stop := answerOn(t, s, connect())
	client := connect()
	for _, test := range []struct{ subject, request, path string }{
		{"info", "", "/api/v1/info"},
		{
			"list", `{"sort":"share","class":1,"order":"desc","limit":"all"}`,
			"/api/v1/communities?sort=share&class=1&order=desc&limit=all",
		},
		{"latest", `{"community":"Lyon cycling"}`, "/api/v1/communities/Lyon%20cycling"},
		{
			"history", `{"community":"Lyon cycling","from":"2026-01-01T00:00:00Z"}`,
			"/api/v1/communities/Lyon%20cycling/history?from=2026-01-01T00:00:00Z",
		},
		{"latest", `{"community":"nobody"}`, "/api/v1/communities/nobody"},
		{"latest", ``, "/api/v1/communities/%20"},
		{"history", `{"community":"b","points":1}`, "/api/v1/communities/b/history?points=1"},
		{"list", `{"colour":"red"}`, "/api/v1/communities?colour=red"},
		{
			"explain", `{"community":"b","from":1,"to":2}`,
			"/api/v1/communities/b/explain?from=1&to=2",
		},
	} {
		reply, err := client.Request(
			"gqlest.query."+test.subject,
			[]byte(test.request),
			10*time.Second,
		)
		if err != nil {
			t.Fatalf("%s %s: %v", test.subject, test.request, err)
		}
		code, _, body := get(t, s, test.path)
		want, got := strings.TrimSpace(string(body)), string(reply.Data)
		if test.subject == "list" {
			want, got = withoutNow(t, want), withoutNow(t, got)
		}
		if got != want {
			t.Errorf("%s %s: %s, want %s", test.subject, test.request, got, want)
		}
		if said := reply.Header.Get(micro.ErrorCodeHeader); code == 200 && said != "" ||
			code != 200 && said != fmt.Sprint(code) {
			t.Errorf("%s %s: code %q, HTTP says %d", test.subject, test.request, said, code)
		}
	}
	for _, request := range []string{
		"[1]", `{"community":["b"]}`,
		`{"community":"b","format":"csv"}`,
	} {
		reply, err := client.Request("gqlest.query.latest", []byte(request), 10*time.Second)
		if err != nil || reply.Header.Get(micro.ErrorCodeHeader) != "400" {
			t.Errorf("%s: %v, %v", request, reply.Header, err)
		}
	}
	reply, err := client.Request("$SRV.INFO.gqlstream", nil, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var info micro.Info
	if err := json.Unmarshal(reply.Data, &info); err != nil || len(info.Endpoints) != 5 {
		t.Errorf("%d endpoints, %v: %s", len(info.Endpoints), err, reply.Data)
	}
	other := serve(t, func(c *Config) { c.Listen = ListenOff })
	write(t, other, estimate("b", "auto", 2, 0.1))
	stopOther := answerOn(t, other, connect())
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if reply, err := client.Request("gqlest.query.latest", []byte(`{"community":"b"}`),
		10*time.Second); err != nil ||
		!strings.Contains(string(reply.Data), `"name":"b"`) {
		t.Errorf("the other process says %v", err)
	}
	if err := stopOther(); err != nil {
		t.Fatal(err)
	}
}

func withoutNow(t *testing.T, text string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "now")
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A long time is answered with roll-ups, a short one with records, in JSON and CSV.
func TestHistoryIsRollupsWhereItIsLong(t *testing.T) {
	s := serve(t, func(c *Config) { c.Rollups = someRollups })
	write(t, s, estimate("x", "auto", 1, 0.5), estimate("x", "auto", 2, 0.25))
	long := into[rollupAnswer](t, s, "/api/v1/communities/x/history")
	if long.Resolution != "hour" || len(long.Rollups) != 3 || len(long.Estimates) != 0 ||
		long.Community != "x" ||
		long.Method != "auto" {
		t.Errorf("%+v", long)
	}
	_, _, body := get(t, s, "/api/v1/communities/x/history?format=csv")
	if lines := strings.Split(strings.TrimSpace(string(body)), "\n"); len(lines) != 7 ||
		!slices.Contains(lines, "2026-03-01T12:00:00Z,x,no,0.2,0.1,0.4,auto,,") {
		t.Errorf("%q", lines)
	}
	s = serve(t, nil)
	write(t, s, estimate("x", "auto", 1, 0.5), estimate("x", "auto", 2, 0.25))
	if short := into[rollupAnswer](t, s,
		"/api/v1/communities/x/history?points=2"); short.Resolution != "record" ||
		len(short.Estimates) != 2 ||
		len(short.Rollups) != 0 {
		t.Errorf("%+v", short)
	}
}

// A short time must be answered with roll-ups if the output log has none of its records any
// more, or only the last ones. Roll-ups are kept for longer.
func TestHistoryIsRollupsWhereRecordsAreGone(t *testing.T) {
	begin := logStart.Add(-10 * 24 * time.Hour).UTC()
	var kept []quant.Estimate
	s := serve(t, func(c *Config) {
		c.Records = func(context.Context, sinks.RecordsQuery) ([]quant.Estimate, bool, error) {
			return kept, true, nil
		}
		c.Rollups = func(context.Context, sinks.RollupQuery) (sinks.RollupAnswer, error) {
			a := sinks.RollupAnswer{Resolution: "minute"}
			for i := range 30 {
				at := begin.Add(time.Duration(i) * time.Minute)
				a.Rollups = append(
					a.Rollups,
					sinks.Rollup{
						Time:  at,
						Until: at.Add(50 * time.Second),
						Count: 2,
						Last:  []float64{0.5, 0.5},
						Mean:  []float64{0.5, 0.5},
					},
				)
			}
			return a, nil
		}
	})
	write(t, s, estimate("x", "auto", 1, 0.5))
	path := fmt.Sprintf(
		"/api/v1/communities/x/history?from=%d&to=%d",
		begin.Unix(),
		begin.Unix()+1800,
	)
	for _, from := range []int{30, 25, 0} { // minutes
		kept = nil
		for i := from; i < 30; i++ {
			e := estimate("x", "auto", 1, 0.5)
			e.Time = begin.Add(time.Duration(i)*time.Minute + 10*time.Second).
				Format(time.RFC3339Nano)
			kept = append(kept, e)
		}
		got := into[rollupAnswer](t, s, path)
		if from > 0 &&
			(got.Resolution != "minute" || len(got.Rollups) != 30 || len(got.Estimates) != 0) {
			t.Errorf(
				"records from minute %d: %s, %d roll-ups, %d records", from, got.Resolution,
				len(got.Rollups), len(got.Estimates),
			)
		}
		if from == 0 && (got.Resolution != "record" || len(got.Estimates) != 30) {
			t.Errorf("all records: %s, %d", got.Resolution, len(got.Estimates))
		}
	}
}

// Roll-ups of more classes than there are now, from before --accept-new-config, are left out.
func TestRollupsOfOtherClassesAreLeftOut(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Rollups = func(ctx context.Context, q sinks.RollupQuery) (sinks.RollupAnswer, error) {
			a, err := someRollups(ctx, q)
			before := a.Rollups[0]
			before.Last, before.Mean = []float64{0.2, 0.3, 0.5}, []float64{0.2, 0.3, 0.5}
			a.Rollups = append([]sinks.Rollup{before}, a.Rollups...)
			return a, err
		}
	})
	write(t, s, estimate("x", "auto", 1, 0.5))
	_, _, body := get(t, s, "/api/v1/communities/x/history?format=csv")
	if lines := strings.Split(strings.TrimSpace(string(body)), "\n"); len(lines) != 7 {
		t.Errorf("%q", lines)
	}
}
