package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline"
	"gqlstream/sinks/alerts"
)

// inbox is a server that keeps all requests.
type inbox[T any] struct {
	*httptest.Server
	got  chan T
	kept []T // that nobody wanted yet
}

func newInbox[T any](t *testing.T) *inbox[T] {
	b := &inbox[T]{got: make(chan T, 100)}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var x T
		if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		b.got <- x
	}))
	t.Cleanup(b.Close)
	return b
}

// next waits for the first request that is wanted.
func (b *inbox[T]) next(t *testing.T, wanted func(T) bool) (x T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), crashStartMax)
	defer cancel()
	for {
		if i := slices.IndexFunc(b.kept, wanted); i >= 0 {
			x = b.kept[i]
			b.kept = slices.Delete(b.kept, i, i+1)
			return x
		}
		select {
		case x = <-b.got:
			b.kept = append(b.kept, x)
		case <-ctx.Done():
			t.Fatal("nothing of that kind was sent")
		}
	}
}

// notice is the message of Alertmanager to a receiver.
type notice struct {
	Alerts []struct {
		Status      string            `json:"status"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		StartsAt    time.Time         `json:"startsAt"`
	} `json:"alerts"`
}

// freePort returns a port without a listener.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startTool runs a program until the test ends.
func startTool(t *testing.T, ready, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = output, output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = c.Wait() // it was killed
		output.Close()
	})
	for deadline := time.Now().Add(crashStartMax); ; pause(t.Context(), 50*time.Millisecond) {
		if text, ok := get(t, ready); ok {
			return
		} else if time.Now().After(deadline) {
			log, _ := os.ReadFile(output.Name())
			t.Fatalf("%s is not ready: %s\n%s", name, text, log)
		}
	}
}

// get reads a page.
func get(t *testing.T, url string) (text string, ok bool) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), false
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		return err.Error(), false
	}
	return string(data), reply.StatusCode == http.StatusOK
}

// predictLeft publishes predictions of forty members of a community, so many of them left.
func predictLeft(t *testing.T, p *pipeline.Pipeline, left int, first bool) {
	t.Helper()
	publisher, err := ingest.NewPublisher(p.Broker.NC, ingest.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	send := func(kind event.Kind, line func(i int) string) {
		var lines strings.Builder
		for i := range 40 {
			lines.WriteString(line(i) + "\n")
		}
		o := ingest.Outgoing{Kind: kind, ContentType: wire.NDJSON, Payload: []byte(lines.String())}
		if err := publisher.Publish(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	send(event.KindPrediction, func(i int) string {
		share := 0.1
		if i < left {
			share = 0.9
		}
		return fmt.Sprintf(
			`{"vertex":%d,"probabilities":[%v,%v],"version":"one"}`, i, share, 1-share,
		)
	})
	if first {
		send(event.KindMember, func(i int) string {
			return fmt.Sprintf(`{"community":"north","vertex":%d}`, i)
		})
	}
	if err := publisher.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A webhook, a real Alertmanager with a receiver of its own, and a real Prometheus must tell the
// same of one alert when it begins and when it ends: share, interval, change, since when, and at
// its end why.
func TestOneAlertHasTheSameTextEverywhere(t *testing.T) {
	for _, name := range []string{"prometheus", "prometheus-alertmanager"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("install the Debian package %s", name)
		}
	}
	dir := t.TempDir()
	hook, receiver := newInbox[alerts.Transition](t), newInbox[notice](t)
	manager, prometheus, page := freePort(t), freePort(t), freePort(t)
	write := func(name, format string, args ...any) string {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, fmt.Sprintf(format, args...))
		return path
	}
	startTool(t, "http://"+manager+"/-/ready", "prometheus-alertmanager",
		"--config.file="+write("alertmanager.yml", `
route: {receiver: desk, group_by: [alertname], group_wait: 0s, group_interval: 1s}
receivers: [{name: desk, webhook_configs: [{url: %q, send_resolved: true}]}]
`, receiver.URL),
		"--storage.path="+filepath.Join(dir, "alertmanager"), "--web.listen-address="+manager,
		"--cluster.listen-address=")
	startTool(t, "http://"+prometheus+"/-/ready", "prometheus",
		"--config.file="+write("prometheus.yml", `
global: {scrape_interval: 1s}
scrape_configs: [{job_name: gqlstream, static_configs: [{targets: [%q]}]}]
`, page),
		"--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address="+prometheus)
	p := startPipeline(t, write("gqlstream.yaml", `
pipeline: story
classes: [left, right]
state: %s
http: {listen: %q}
display: {communities: {north: Northern towns}, classes: {left: in favour}}
estimates: [{method: pcc}]
alerts:
  rules:
    - {name: swing, classes: left, when: point > 0.6, recover: 0.55, labels: {severity: page}}
    - {name: move, classes: left, when: change over 10s > 0.2}
notify:
  webhooks: [{name: hook, url: %q}]
  alertmanagers: [{name: desk, url: "http://%s"}]
`, dir, page, hook.URL, manager))

	share := func(is string) func() bool {
		return func() bool {
			return asked(t, prometheus, `gqlstream_estimate{community="north",class="left"}`) == is
		}
	}
	firing := func(is string) func() bool {
		return func() bool {
			return asked(t, prometheus, `sum(gqlstream_alerts{state="firing"})`) == is
		}
	}
	predictLeft(t, p, 20, true)
	eventually(t, "the first estimate", share("0.5"))
	pause(t.Context(), 12*time.Second) // the past that move compares with
	predictLeft(t, p, 32, false)
	begins := map[string]alerts.Transition{}
	for len(begins) < 2 {
		x := hook.next(t, func(x alerts.Transition) bool { return x.State == alerts.Firing })
		begins[x.Rule] = x
		sameStory(t, x, receiver, "firing")
	}
	point := begins["move"].Point
	if math.Abs(point-0.74) > 1e-6 || math.Abs(begins["move"].Moved-0.24) > 1e-6 {
		t.Errorf("began with %+v", begins)
	}
	eventually(t, "the share in Prometheus", share(strconv.FormatFloat(point, 'g', -1, 64)))
	want := map[string]alerts.End{"move": alerts.EndWindow, "swing": alerts.EndBack}
	for _, rule := range []string{"move", "swing"} {
		x := hook.next(t, func(x alerts.Transition) bool { return x.State == alerts.Resolved })
		sameStory(t, x, receiver, "resolved")
		began := begins[x.Rule]
		if x.Rule != rule || x.End != want[rule] || x.Alert != began.Alert ||
			x.Since != began.Since {
			t.Errorf("ended with %+v, began with %+v", x, began)
		}
		t.Logf("told:\n%s\n%s", began.Text, x.Text)
		if rule == "move" {
			predictLeft(t, p, 20, false)
		}
	}
	eventually(t, "the share at the end in Prometheus", share("0.5"))
	eventually(t, "the end in Prometheus", firing("0"))
}

// sameStory compares the message of a webhook with that of Alertmanager to its receiver.
func sameStory(t *testing.T, x alerts.Transition, receiver *inbox[notice], status string) {
	t.Helper()
	n := receiver.next(t, func(n notice) bool {
		return len(n.Alerts) == 1 && n.Alerts[0].Status == status &&
			n.Alerts[0].Labels["rule"] == x.Rule
	})
	got := n.Alerts[0]
	if !strings.HasPrefix(x.Text, "in favour of Northern towns is ") || x.Community != "north" ||
		x.Class != "left" {
		t.Errorf("%s: text %q of %s, %s", status, x.Text, x.Community, x.Class)
	}
	want := map[string]string{
		"summary": x.Rule + ": " + x.Text, "share": x.ShareText(), "interval": x.IntervalText(),
		"change": x.ChangeText(), "reason": x.Reason, "id": x.ID, "end": string(x.End),
	}
	for name, text := range want {
		if got.Annotations[name] != text {
			t.Errorf("%s: Alertmanager has %s %q, the webhook %q", status, name,
				got.Annotations[name], text)
		}
		quiet := name == "end" || name == "change" && x.Rule == "swing" && status == "firing"
		if !quiet && text == "" {
			t.Errorf("%s: the webhook got no %s: %+v", status, name, x)
		}
	}
	since, err := time.Parse(time.RFC3339Nano, x.Since)
	if err != nil || got.StartsAt.Sub(since).Abs() > time.Millisecond {
		t.Errorf("%s: Alertmanager has it since %v, the webhook %v", status, got.StartsAt, x.Since)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(crashStartMax); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		pause(t.Context(), 100*time.Millisecond)
	}
}

// asked returns the one value of a query, "" while there is none.
func asked(t *testing.T, server, query string) string {
	text, _ := get(t, "http://"+server+"/api/v1/query?query="+url.QueryEscape(query))
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Data.Result) != 1 {
		return ""
	}
	value, _ := answer.Data.Result[0].Value[1].(string)
	return value
}
