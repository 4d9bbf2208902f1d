package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
)

// The communities that the test of privacy hides: one with too few people, one with a
// single known person among unknown ids, one with a person who outweighs all others, and
// one that loses people later.
var hiddenCommunities = []string{"hfew", "hghosts", "hheavy", "hfalls"}

// Every id of a vertex begins with this, so that a name is found wherever it is shown.
const personPrefix = "zz-"

// Log times of the test, in seconds: when it begins, and when a community loses people.
const (
	privateAt = 1_000_000_000
	fallsAt   = privateAt + 20
)

const privacyConfig = `
classes: [left, right]
communities: [{name: everyone, everyone: true}]
estimates: [{method: auto}, {method: pcc}]
step: {every: 1s, emit_every: 1s, time: event}
emit: {threshold: 0}
alerts:
  rules:
    - {name: many, when: point > 0.01, every: 1s}
    - {name: moves, when: change over 10s > 0.001, every: 1s}
    - {name: apart, when: "difference(big, hfew) > -1", every: 1s}
http:
  public: [everyone, big, hfew, hghosts, hheavy, hfalls]
  silences: true
  answers: true
`

// privateRun is a pipeline with the usual privacy floor and all of its outputs.
type privateRun struct {
	*eraseRun
	page  string
	dir   string // of its files
	mu    sync.Mutex
	said  bytes.Buffer // log and webhooks
	fell  uint64       // last position of the log before a community fell below the floor
	last  uint64       // last position of the log
	leaks map[string]bool
}

// Write takes a line of the log.
func (r *privateRun) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.Write(data)
}

func startPrivate(t *testing.T) *privateRun {
	t.Helper()
	r := &privateRun{dir: t.TempDir(), leaks: map[string]bool{}}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(r, q.Body)
	}))
	t.Cleanup(hook.Close)
	path := filepath.Join(t.TempDir(), "private.yaml")
	text := privacyConfig + fmt.Sprintf(`
notify: {webhooks: [{name: ops, url: %q}]}
output: {file: %s/estimates.ndjson, alerts: %[2]s/alerts.ndjson, parquet: %[2]s/parts, every: 1s}
`, hook.URL, r.dir)
	testfile.Write(t, path, text)
	settings, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.HTTP.Listen = t.TempDir(), "127.0.0.1:0"
	p, err := pipeline.Open(t.Context(), settings, pipeline.Options{
		Out: r, Log: slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.eraseRun = &eraseRun{t: t, js: p.Broker.JS, p: p, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.done <- p.Run(ctx) }()
	r.page = strings.TrimSuffix(p.Page.URL(), "/")
	return r
}

// person publishes the data of one vertex: its membership, a prediction, and a label if
// class is not empty.
func (r *privateRun) person(id string, at int, left float64, class string) {
	r.t.Helper()
	r.publish(event.KindPrediction,
		fmt.Sprintf(`{"vertex": %q, "p": [%g, %g], "time": %d}`, id, left, 1-left, at))
	if class != "" {
		r.publish(event.KindLabel,
			fmt.Sprintf(`{"vertex": %q, "class": %q, "time": %d}`, id, class, at))
	}
}

func (r *privateRun) join(community, id string, multiplicity, at int) {
	r.t.Helper()
	r.publish(event.KindMember, fmt.Sprintf(
		`{"community": %q, "vertex": %q, "multiplicity": %d, "time": %d}`,
		community, id, multiplicity, at))
}

// fill publishes a town of known people, and the communities.
func (r *privateRun) fill(at int) {
	r.t.Helper()
	for i := range 40 {
		id, class := fmt.Sprint(personPrefix, i), ""
		if i%2 == 0 {
			class = []string{"left", "right"}[i/2%2]
		}
		r.person(id, at, []float64{0.75, 0.25}[i/2%2], class)
		r.publish(event.KindEdge, fmt.Sprintf(`{"src": %q, "dst": %q, "time": %d}`, id,
			fmt.Sprint(personPrefix, (i+1)%40), at))
		r.join("big", id, 1, at)
		if i < 30 {
			r.join("other", id, 1, at)
		}
		if i < 12 {
			r.join("hfalls", id, 1, at)
			r.join("hheavy", id, 1, at)
		}
		if i < 5 {
			r.join("hfew", id, 1, at)
		}
		if i < 15 {
			r.join("hghosts", fmt.Sprint(personPrefix, "ghost-", i), 1, at)
		}
	}
	r.person(personPrefix+"alice", at, 0.97, "left")
	for _, community := range []string{"hfew", "hghosts"} {
		r.join(community, personPrefix+"alice", 1, at)
	}
	r.join("hheavy", personPrefix+"alice", 1_000_000, at)
	r.publish(event.KindLabel, fmt.Sprintf(
		`{"vertex": "%svictor", "class": "left", "rol": "train", "time": %d}`, personPrefix, at))
	r.publish(event.KindControl, tick("tick", at+10))
}

// end returns the last position of the log.
func (r *privateRun) end() uint64 {
	r.t.Helper()
	stream, err := r.js.Stream(r.t.Context(), "GQL")
	if err != nil {
		r.t.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}

// estimated waits until the page has an estimate after a position.
func (r *privateRun) estimated(after uint64) {
	r.t.Helper()
	for begun := time.Now(); ; pause(r.t.Context(), 10*time.Millisecond) {
		var answer struct{ Position uint64 }
		if fetch(r.t, r.p, "/api/v1/estimates", &answer); answer.Position > after {
			return
		}
		if time.Since(begun) > crashStartMax {
			r.t.Fatalf("no estimate after %d", after)
		}
	}
}

// delivered waits until the worker has read past the position at which a community fell
// below the floor, a webhook was called, and every follower has taken all published steps
// except the open one.
func (r *privateRun) delivered() {
	r.t.Helper()
	for begun := time.Now(); ; pause(r.t.Context(), 10*time.Millisecond) {
		var status struct {
			Position uint64
			Sinks    []struct{ Behind uint64 }
		}
		fetch(r.t, r.p, "/api/v1/status", &status)
		behind := uint64(0) // the open step
		for _, sink := range status.Sinks {
			behind = max(behind, sink.Behind)
		}
		r.mu.Lock()
		called := strings.Contains(r.said.String(), `"rule":"many"`)
		r.mu.Unlock()
		if called && status.Position > r.fell && behind <= 1 {
			return
		}
		if time.Since(begun) > crashStartMax {
			r.t.Fatalf("webhook called: %v; %+v", called, status)
		}
	}
}

// plainFields are the numbers that a record of a hidden community may have: where it stands in the
// logs, how the community is defined and drawn, and how the answer was asked for.
var plainFields = []string{
	"position", "resolution", "seconds", "total", "offset", "limit", "points", "records", "next",
}

// leak notes a person or a hidden community that an output shows.
func (r *privateRun) leak(output, what string) {
	if !r.leaks[output+what] {
		r.leaks[output+what] = true
		r.t.Errorf("%s shows %s", output, what)
	}
}

// namesHidden reports whether an object is of a hidden community.
func namesHidden(object map[string]any) bool {
	for _, key := range []string{"community", "name", "other", "communities"} {
		if name, is := object[key].(string); is && slices.Contains(hiddenCommunities, name) {
			return true
		}
	}
	return false
}

// isPast reports whether an object is a record of before the community fell below the floor, which
// stays, as docs/privacy.md says.
func (r *privateRun) isPast(object map[string]any) bool {
	if position, is := object["position"].(float64); is {
		return object["community"] == "hfalls" && uint64(position) <= r.fell
	}
	text, _ := object["time"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && at.Before(time.Unix(fallsAt, 0))
}

// judge looks for numbers of hidden communities in a value of JSON.
func (r *privateRun) judge(output string, value any, hidden bool, key string) {
	switch v := value.(type) {
	case map[string]any:
		if r.isPast(v) {
			return
		}
		hidden = hidden || namesHidden(v)
		for k, inner := range v {
			r.judge(output, inner, hidden || slices.Contains(hiddenCommunities, k), k)
		}
	case []any:
		for _, inner := range v {
			r.judge(output, inner, hidden, key)
		}
	case float64:
		if few := v > 0 && v < 11; few && (key == "changes" || key == "count") {
			r.leak(output, fmt.Sprintf("a cause of fewer than 11 changes: %q: %v", key, v))
		}
		if hidden && v != 0 && !slices.Contains(plainFields, key) {
			r.leak(output, fmt.Sprintf("the number %q: %v of a hidden community", key, v))
		}
	}
}

// look checks an output as text, and as JSON if it is JSON. hidden says that all of it
// belongs to a hidden community.
func (r *privateRun) look(output string, data []byte, hidden bool) {
	if at := bytes.Index(data, []byte(personPrefix)); at >= 0 {
		r.leak(output, fmt.Sprintf("a person: %q", data[max(0, at-80):min(len(data), at+40)]))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var value any
		if decoder.Decode(&value) != nil {
			return
		}
		r.judge(output, value, hidden, "")
	}
}

// get asks an address of the page and judges the answer.
func (r *privateRun) get(path string, hidden bool) (body []byte) {
	r.t.Helper()
	reply, err := http.Get(r.page + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer reply.Body.Close()
	if body, err = io.ReadAll(reply.Body); err != nil {
		r.t.Fatal(err)
	}
	if !hidden && reply.StatusCode != http.StatusOK {
		r.t.Errorf("%s: %s: %s", path, reply.Status, body)
	}
	r.look(path, body, hidden)
	return body
}

// share is a figure in percent, or a share, in a page or a row.
var share = regexp.MustCompile(`\d ?%|0\.\d\d`)

// askEverything asks every address of the page, with every community, and from every start that a
// question may have. A new address must be added here, or the test fails.
func (r *privateRun) askEverything(paths []string) {
	r.t.Helper()
	of := func(path, name string) string { return strings.ReplaceAll(path, "{name}", name) }
	for _, path := range paths {
		queries := []string{""}
		switch path {
		case "/api/v1/communities":
			queries = []string{
				"?limit=all&trend=24&gone=show", "?sort=movement&class=1", "?sort=change",
				"?format=csv&limit=all", "?sort=share&order=desc", "?q=h", "?flag=any",
			}
		case "/api/v1/communities/{name}":
			queries = []string{"", "?format=csv"}
		case "/api/v1/communities/{name}/estimates", "/api/v1/communities/{name}/history":
			queries = []string{"", "?format=csv", "?method=pcc"}
		case "/api/v1/communities/{name}/explain":
			between := fmt.Sprintf("?from=%d&to=%d", r.fell, r.last)
			queries = []string{between, between + "&method=pcc"}
		case "/api/v1/communities/{name}/difference":
			queries = []string{
				"?other=other", "?other=hfew", "?other=hfalls", "?at=2001-09-09T01:46:50Z",
				"?other=hheavy&format=csv",
			}
		case "/api/v1/estimates":
			queries = []string{"", "?community=hfew&community=big", fmt.Sprint("?after=", r.fell)}
		case "/api/v1/alerts":
			queries = []string{"", "?community=hfew"}
		case "/api/v1/alerts/silence", "/api/v1/labels":
			continue // these take, and show nothing: see postEverything
		case "/api/v1/info", "/api/v1/status", "/api/v1/classifier", "/api/v1/quarantine",
			"/metrics", "/healthz", "/readyz", "/embed/{name}", "/embed/{name}/data",
			"/api/v1/communities/{name}/ask":
		default:
			r.t.Errorf("the test of privacy does not try %s", path)
		}
		for _, query := range queries {
			if !strings.Contains(path, "{name}") {
				r.judgeRows(path+query, r.get(path+query, false))
				continue
			}
			for _, name := range append([]string{"big", "everyone"}, hiddenCommunities...) {
				hidden := slices.Contains(hiddenCommunities, name) ||
					strings.Contains(query, "other=h")
				body := r.get(of(path, name)+query, hidden)
				past := name == "hfalls" && (strings.HasSuffix(path, "/estimates") ||
					strings.HasSuffix(path, "/history")) // rows have no position
				if found := share.Find(body); hidden && !past && found != nil &&
					(path == "/embed/{name}" || strings.Contains(query, "csv")) {
					r.leak(of(path, name)+query, fmt.Sprintf("a share: %q", found))
				}
			}
		}
	}
}

// judgeRows looks for rows of hidden communities in a table, or in metrics.
func (r *privateRun) judgeRows(output string, body []byte) {
	for line := range strings.Lines(string(body)) {
		for _, name := range hiddenCommunities {
			named := strings.Contains(line, `community="`+name+`"`) ||
				strings.Contains(line, ","+name+",")
			if named && !plainMetric.MatchString(line) {
				r.leak(output, fmt.Sprintf("a row of a hidden community: %q", line))
			}
		}
	}
}

// plainMetric matches the metrics that a hidden community may have: that it is hidden, and when
// records of it came.
var plainMetric = regexp.MustCompile(
	`^gqlstream_estimate_(flag|suppressed|records_total|log_time_seconds|timestamp_seconds)\{`)

// streams judges every message of every stream but those of the pipeline itself.
func (r *privateRun) streams() {
	r.t.Helper()
	var names []string
	for name := range r.js.StreamNames(r.t.Context()).Name() {
		names = append(names, name)
	}
	if len(names) < 8 {
		r.t.Errorf("only the streams %q", names)
	}
	for _, name := range names {
		if name == "GQL" || name == "GQL_QUARANTINE" {
			continue // which readers may not read
		}
		c, err := r.js.OrderedConsumer(r.t.Context(), name, jetstream.OrderedConsumerConfig{})
		if err != nil {
			r.t.Fatal(err)
		}
		for {
			m, err := c.Next(jetstream.FetchMaxWait(300 * time.Millisecond))
			if err != nil {
				break
			}
			output := "stream " + name + ": " + m.Subject()
			r.look(output, m.Data(), false)
		}
	}
}

// files judges every file of the outputs.
func (r *privateRun) files() {
	r.t.Helper()
	n := 0
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		n++
		r.look("file "+filepath.Base(path), data, false)
		return err
	})
	if err != nil || n < 4 {
		r.t.Errorf("%d files: %v", n, err)
	}
}

// questions asks every subject of NATS that has an answer.
func (r *privateRun) questions() {
	r.t.Helper()
	nc := r.js.Conn()
	for _, kind := range []string{"info", "list", "latest", "history", "explain"} {
		for _, name := range append([]string{"big"}, hiddenCommunities...) {
			payload := fmt.Sprintf(`{"community": %q}`, name)
			if kind == "info" || kind == "list" {
				payload = ""
			}
			m, err := nc.Request("gqlest.query."+kind, []byte(payload), 20*time.Second)
			if err != nil {
				r.t.Fatal(err)
			}
			hidden := slices.Contains(hiddenCommunities, name) && payload != ""
			r.look("question "+kind+" of "+name, m.Data, hidden)
			for _, values := range m.Header {
				r.look("header of "+kind, []byte(fmt.Sprint(values)), false)
			}
		}
	}
}

// post sends a label and a silence, as a reader of the page may, and judges the answers.
func (r *privateRun) post() {
	r.t.Helper()
	for path, body := range map[string][2]string{
		"/api/v1/labels": {"text/csv", "vertex,label\n" + "nobody,left\n"},
		"/api/v1/alerts/silence": {
			"application/json", `{"rule": "many", "community": "hfew", "class": "*", "for": ` +
				`"1h", "by": "a"}`,
		},
	} {
		reply, err := http.Post(r.page+path, body[0], strings.NewReader(body[1]))
		if err != nil {
			r.t.Fatal(err)
		}
		data, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK {
			r.t.Errorf("%s: %s %s, %v", path, reply.Status, data, err)
		}
		r.look("answer to "+path, data, false)
	}
}

// pathsOfAPI reads the addresses of the page from its description, which a test of the page
// compares with the page.
func pathsOfAPI(t *testing.T) (paths []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^  (/[^:]*):$`).FindAllSubmatch(text, -1) {
		paths = append(paths, string(found[1]))
	}
	if len(paths) < 20 {
		t.Fatalf("only the paths %q", paths)
	}
	return paths
}

// Under the usual privacy floor no output of a pipeline may name a person. No output may
// show a figure of a community with too few known people, with one person who outweighs the
// others, or that had enough people only in the past: not the page, the API, NATS, files,
// metrics, alerts, webhooks or the log.
func TestNoOutputShowsPeopleBelowTheFloor(t *testing.T) {
	r := startPrivate(t)
	r.fill(privateAt)
	r.estimated(1)
	r.fell = r.end()
	for i := range 5 {
		r.publish(event.KindMember, fmt.Sprintf(
			`{"community": "hfalls", "op": "leave", "vertex": "%s%d", "time": %d}`,
			personPrefix, i, fallsAt))
	}
	r.person(personPrefix+"alice", privateAt+21, 0.11, "right")
	for i := range 6 { // the estimates of large communities move, and alerts fire
		r.person(fmt.Sprint(personPrefix, 20+i), privateAt+22, 0.97, "left")
	}
	r.publish(event.KindControl, tick("checkpoint", privateAt+30))
	r.publish(event.KindControl, tick("flush", privateAt+31))
	r.publish(event.KindControl, tick("tick", privateAt+40))
	r.last = r.end()
	r.estimated(r.fell)
	r.delivered()
	r.askEverything(pathsOfAPI(t))
	r.questions()
	r.post()
	r.streams()
	r.stop()
	r.files()
	r.look("the log, or a webhook", r.said.Bytes(), false)
	if !strings.Contains(r.said.String(), `"rule":"many"`) {
		t.Error("no webhook was called")
	}
}
