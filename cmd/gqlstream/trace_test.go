package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// otlpRequest is what a receiver reads of an ExportTraceServiceRequest in JSON.
type otlpRequest struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []otlpAttribute }
		ScopeSpans []struct{ Spans []otlpSpan }
	}
}

type otlpSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []otlpAttribute
}

type otlpAttribute struct {
	Key   string
	Value struct{ StringValue, IntValue string }
}

// A run must send a trace of each emission to the endpoint of the environment: solution, publishing
// and checkpoint lie within the emission, in order, and its attributes are those of the records.
// A receiver that fails costs a warning, and an address without a scheme is refused.
func TestEmissionsAreTraced(t *testing.T) {
	got := make(chan otlpRequest, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			var x otlpRequest
			err := json.NewDecoder(r.Body).Decode(&x)
			if err != nil || r.URL.Path != "/v1/traces" ||
				r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: %v", r.Method, r.URL, err)
			}
			got <- x
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
	defer receiver.Close()
	dir := t.TempDir()
	state, log := filepath.Join(dir, "state"), filepath.Join(dir, "log.ndjson")
	mustRun(t, "simulate", "--vertices", "300", "--duration", "20s", "--out", log)
	mustRun(t, "publish", "--state", state, "--classes", "2", "--log", log)
	run := []string{
		"run", "--state", state, "--classes", "2", "--everyone", "--exit-when-drained",
		"--output", filepath.Join(dir, "estimates.ndjson"),
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318")
	if code, _, said := runCommand(run...); code != exitUsage ||
		!strings.Contains(said, "want an address such as http://127.0.0.1:4318") {
		t.Errorf("exit %d: %s", code, said)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL+"/")
	t.Setenv("OTEL_SERVICE_NAME", "newsroom")
	if _, said := mustRun(t, run...); strings.Count(said, "does not take them") != 1 ||
		!strings.Contains(said, "503 Service Unavailable") {
		t.Errorf("the run says\n%s", said)
	}
	close(got)
	parts, records, events := map[string]int{}, 0, 0
	for x := range got {
		rs := x.ResourceSpans[0]
		if a := rs.Resource.Attributes; len(a) != 1 || a[0].Value.StringValue != "newsroom" {
			t.Errorf("resource %+v", a)
		}
		r, e := checkTrace(t, rs.ScopeSpans[0].Spans, parts)
		records, events = records+r, events+e
	}
	file, err := os.ReadFile(filepath.Join(dir, "estimates.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(string(file), "\n")
	if parts["solve"] == 0 || parts["publish"] != parts["solve"] || parts["checkpoint"] == 0 ||
		records != lines || events == 0 {
		t.Errorf("parts %v, %d events, %d records, published %d", parts, events, records, lines)
	}
	t.Logf("parts %v, %d records, %d events", parts, records, events)
}

// checkTrace checks a trace, counts its parts by name, and returns the records and events.
func checkTrace(t *testing.T, spans []otlpSpan, parts map[string]int) (records, events int) {
	t.Helper()
	root, ids, values := spans[0], []string{}, map[string]string{}
	for _, a := range root.Attributes {
		values[strings.TrimPrefix(a.Key, "gqlstream.")] = a.Value.IntValue + a.Value.StringValue
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Errorf("%v in %+v", err, values)
		}
		return n
	}
	if root.Name != "emission" || root.ParentSpanID != "" || len(root.TraceID) != 32 ||
		number(values["position"]) == 0 || !strings.HasSuffix(values["log_time"], "Z") ||
		number(values["communities"]) > number(values["records"]) {
		t.Errorf("%+v", root)
	}
	before := root.StartTimeUnixNano
	for _, s := range spans {
		if slices.Contains(ids, s.SpanID) || len(s.SpanID) != 16 || s.TraceID != root.TraceID ||
			s.StartTimeUnixNano < before || s.EndTimeUnixNano < s.StartTimeUnixNano ||
			s.EndTimeUnixNano > root.EndTimeUnixNano {
			t.Errorf("%+v in %+v", s, root)
		}
		if ids = append(ids, s.SpanID); s.Name != "emission" {
			parts[s.Name]++
			if s.ParentSpanID != root.SpanID {
				t.Errorf("%+v is not in %+v", s, root)
			}
			before = s.StartTimeUnixNano
		}
	}
	return number(values["records"]), number(values["events"])
}
