package pipeline

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"gqlstream/incremental"
	"gqlstream/pipeline/config"
)

// Tracer sends a trace of each emission to an OpenTelemetry receiver: OTLP over HTTP, as JSON. (The
// official exporter imports grpc.) Nothing waits for the receiver: a trace is dropped if it does
// not take it, or while tracesMax wait. The loop of the main fold owns the spans. nil makes none.
type Tracer struct {
	url, service string
	log          *slog.Logger
	queue        chan []byte
	done         chan struct{}

	spans  []object // of the next emission; the first is the emission, from its first step on
	events int      // since the last emission
}

const tracesMax, traceTimeout, traceReportEvery = 256, 5 * time.Second, time.Minute

// object is one of OTLP's JSON, which has identities in hexadecimal digits, and numbers of 64 bits
// as text.
type object = map[string]any

// NewTracer returns a tracer to the address OTEL_EXPORTER_OTLP_ENDPOINT for the service
// OTEL_SERVICE_NAME, by default gqlstream; nil without an address.
func NewTracer(env func(string) string, log *slog.Logger) (*Tracer, error) {
	at := env("OTEL_EXPORTER_OTLP_ENDPOINT")
	if at == "" {
		return nil, nil
	}
	if !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") {
		return nil, config.Usagef(
			"OTEL_EXPORTER_OTLP_ENDPOINT: %q: want an address such as http://127.0.0.1:4318", at)
	}
	t := &Tracer{
		url: strings.TrimRight(at, "/") + "/v1/traces", log: log,
		service: cmp.Or(env("OTEL_SERVICE_NAME"), "gqlstream"),
		queue:   make(chan []byte, tracesMax), done: make(chan struct{}),
	}
	go t.send()
	return t, nil
}

// Close sends what waits, for at most traceTimeout.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	close(t.queue)
	select {
	case <-t.done:
	case <-time.After(traceTimeout):
	}
}

// send delivers traces until the tracer is closed.
func (t *Tracer) send() {
	defer close(t.done)
	client, reported := http.Client{Timeout: traceTimeout}, time.Time{}
	for body := range t.queue {
		reply, err := client.Post(t.url, "application/json", bytes.NewReader(body))
		if err == nil {
			reply.Body.Close()
			if reply.StatusCode >= http.StatusBadRequest {
				err = fmt.Errorf("it answered %s", reply.Status)
			}
		}
		if err != nil && time.Since(reported) > traceReportEvery {
			t.log.Warn("the receiver of traces does not take them", "url", t.url, "reason", err)
			reported = time.Now()
		}
	}
}

// add notes a part of the work that ends now. Steps of the fold that follow each other are one.
func (t *Tracer) add(name string, begun time.Time, events int) {
	if t == nil {
		return
	}
	begin := fmt.Sprint(begun.UnixNano())
	if t.spans == nil {
		t.spans, t.events = []object{{"name": "emission", "startTimeUnixNano": begin}}, 0
	}
	t.events += events
	if name != "fold" || t.spans[len(t.spans)-1]["name"] != name {
		t.spans = append(t.spans, object{"name": name, "startTimeUnixNano": begin})
	}
	t.spans[len(t.spans)-1]["endTimeUnixNano"] = fmt.Sprint(time.Now().UnixNano())
}

// emitted queues the trace of an emission that is over.
func (t *Tracer) emitted(result *incremental.Result) {
	if t == nil {
		return
	}
	communities := map[string]bool{}
	for i := range result.Estimates {
		communities[result.Estimates[i].Community] = true
	}
	root := t.spans[0]
	root["endTimeUnixNano"] = t.spans[len(t.spans)-1]["endTimeUnixNano"]
	root["attributes"] = attributes(object{
		"gqlstream.position": int(result.Position), "gqlstream.log_time": result.Time.String(),
		"gqlstream.events": t.events, "gqlstream.communities": len(communities),
		"gqlstream.records": len(result.Estimates),
	})
	identity := make([]byte, 16+8*len(t.spans))
	_, _ = rand.Read(identity) // never fails
	for i, s := range t.spans {
		s["traceId"], s["kind"] = fmt.Sprintf("%x", identity[:16]), 1
		s["spanId"] = fmt.Sprintf("%x", identity[16+8*i:][:8])
		if i > 0 {
			s["parentSpanId"] = root["spanId"]
		}
	}
	body, _ := json.Marshal(object{"resourceSpans": []object{{ // text and numbers cannot fail
		"resource":   object{"attributes": attributes(object{"service.name": t.service})},
		"scopeSpans": []object{{"spans": t.spans}},
	}}})
	select {
	case t.queue <- body:
	default:
	}
	t.spans = nil
}

func attributes(values object) (list []object) {
	for key, value := range values {
		kind := "stringValue"
		if _, number := value.(int); number {
			kind = "intValue"
		}
		list = append(list, object{"key": key, "value": object{kind: fmt.Sprint(value)}})
	}
	return list
}
