package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
)

// hostileSeconds is how long hostile clients try in an ordinary run of the tests.
const hostileSeconds = 3

// hostileSubjects are the subjects of the clients' messages, questions and replies.
var hostileSubjects = []string{
	"gql.edge", "gql.label", "gql.prediction", "gql.member", "gql.vertex", "gql.control",
	"gql.skip.1",
	"gql.skip.2-9", "gql.x", "gqlest.shard.0", "gqlest.shard.1", "gqlest.estimate.berlin.auto",
	"gqlest.alert.a.b", "gqlest.history.day.berlin.auto", "gqlq.edge",
	"$KV.gql_estimates.berlin.auto",
	"gqlest.query.info", "gqlest.query.list", "gqlest.query.latest", "gqlest.query.history",
	"gqlest.query.explain",
	"$SRV.PING", "$SRV.INFO", "$SRV.STATS.gqlstream", "$JS.API.STREAM.INFO.GQL",
	"$JS.API.STREAM.PURGE.GQL", "$JS.API.STREAM.DELETE.GQL_ESTIMATES", "$JS.API.STREAM.UPDATE.GQL",
	"$JS.API.CONSUMER.CREATE.GQL_ESTIMATES", "$JS.API.CONSUMER.DELETE.GQL_ALERTS.webhook-ops",
	"JS.PIPELINE.API.CONSUMER.CREATE.GQL_ESTIMATES", "$JS.API.DIRECT.GET.GQL", "copies.readers.x",
	"$JS.ACK.GQL_ALERTS.webhook-ops.1.1.1.1.1", "_INBOX.x.y", "_R_.abc", "gqlask",
}

// hostilePayloads are events, questions, control records, marks and rubbish. V is any vertex.
var hostilePayloads = []string{
	"", "{}", "x", `{"src": V, "dst": 1V}`, `{"vertex": V, "class": "left"}`,
	`{"vertex": V, "probabilities": [0.2, 0.8]}`, `{"community": "berlin", "vertex": V}`,
	`{"vertex": V, "probabilities": [0.9, 0.1]}`, `{"vertex": V, "erase": true}`, `{"op": "flush"}`,
	`{"op": "skip", "position": 3}`,
	`{"op": "configure", "communities": []}`, `{"op": "checkpoint"}`, `{"op": "tick"}`,
	`{"op": "configure", "config": {"communities": [{"name": "berlin"}, {"name": "nV", "where": ` +
		`{"a": V}}]}}`,
	`{"op": "configure", "config": {"communities": [{"name": "everyone", "everyone": true}]}}`,
	`{"op": "tick", "time": "2024-05-01T12:00:00Z"}`, `{"op": "note", "text": "nV"}`,
	`{"vertex": V, "attributes": {"a": V}}`,
	`{"author": V, "probabilities": [0.1, 0.9], "reply_to": 1V}`,
	`{"community": "everyone", "from": "2024-05-01T12:00:00Z", "points": V}`,
	`{"community": "everyone", "from": 1, "to": V}`, `{"limit": V, "sort": "share"}`,
	`{"community": "berlin"}`, `{"writer": {}, "position": 9, "part": 1, "parts": 1, "log": "x"}`,
	`{"name": "GQL", "subjects": ["gql.>"], "metadata": {"gqlstream.skipped": "1-9"}}`,
	`{"stream_name": "GQL_ESTIMATES", "config": {"deliver_subject": "gql.edge", "ack_policy": ` +
		`"none"}}`,
}

// operatorSubjects are the subjects that a faulty program of an operator writes to. The operator
// may write to all of them, so the run and a replay must read each record alike.
var operatorSubjects = []string{
	"gql.edge", "gql.label", "gql.prediction", "gql.post", "gql.member", "gql.vertex",
	"gql.control",
	"gql.control", "gql.skip.1", "gql.x", "gqlest.query.info", "gqlest.query.latest",
	"gqlest.query.history",
	"gqlest.query.explain", "$SRV.PING",
}

// lagMax is how many messages of the log the run may be behind before hostile clients wait for it.
const lagMax = 1000

// pace is open while hostile clients may send. Without it an hour of them leaves a log that takes
// hours to follow and to replay, and nothing is compared.
type pace struct {
	open    atomic.Bool
	bursts  int
	working time.Duration // of the run: from the first message of a burst to the last that it took
	logged  uint64        // messages in the log at the end
}

// keep lets the attackers send for a second, or until the run is lagMax messages behind. Then it
// waits until the run has read the whole log, and pauses for as long as sending and reading took.
// The run therefore works at most half of the time, and a replay takes no longer. Before each burst
// an operator configures the communities again, so that the run has communities to estimate.
func (p *pace) keep(t *testing.T, url, page string, until time.Time) {
	operator := connect(t, url, "operator")
	stream, err := operator.js.Stream(t.Context(), "GQL")
	if err != nil {
		t.Error(err)
		return
	}
	last := func() uint64 {
		for {
			info, err := stream.Info(t.Context())
			if err == nil {
				return info.State.LastSeq
			}
			if t.Context().Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
	}
	for time.Now().Before(until) && !t.Failed() {
		begun := time.Now()
		configure(t, operator.js)
		publish(t, operator.js, 4)
		p.open.Store(true)
		for last() < position(t, page)+lagMax && time.Since(begun) < time.Second {
			time.Sleep(10 * time.Millisecond)
		}
		p.open.Store(false)
		time.Sleep(50 * time.Millisecond) // messages on their way
		for p.logged = last(); position(t, page) < p.logged; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 10*time.Minute {
				t.Errorf(
					"the run is at position %d of %d after 10 minutes",
					position(t, page),
					p.logged,
				)
				return
			}
		}
		p.bursts++
		p.working += time.Since(begun)
		time.Sleep(min(time.Since(begun), time.Until(until)))
	}
}

// position returns the position of a run by its metrics.
func position(t *testing.T, page string) uint64 {
	t.Helper()
	reply, err := http.Get(page + "/metrics")
	if err != nil {
		t.Error(err)
		return 0
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	_, after, found := strings.Cut(string(body), "\ngqlstream_position ")
	if err != nil || !found {
		t.Errorf("no position in the metrics: %v", err)
		return 0
	}
	line, _, _ := strings.Cut(after, "\n")
	at, err := strconv.ParseFloat(line, 64)
	if err != nil {
		t.Error(err)
	}
	return uint64(at)
}

// configure has the communities of the beginning configured, and returns the position of that.
func configure(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	const communities = `{"op": "configure", "config": {"communities": [
		{"name": "everyone", "everyone": true}, {"name": "berlin"}]}}`
	for {
		ack, err := js.Publish(t.Context(), "gql.control", []byte(communities))
		if err == nil {
			return ack.Sequence
		}
		if t.Context().Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

// operatorReplies are where that program wants acknowledgements. The server writes them there, as
// docs/permissions.md says, and nobody may take them for estimates, marks or alerts.
var operatorReplies = []string{
	"gqlest.estimate.berlin.auto", "gqlest.estimate.everyone.auto", "gqlest.estimate.x.pcc",
	"gqlest.alert.a.b", "gqlest.shard.0", "gqlest.shard.1", "gql.skip.1", "gql.edge", "gqlq.edge",
}

// attack has one client publish, ask and reply at random while the pace is open, until the time is
// over.
func attack(t *testing.T, url, role string, seed uint64, p *pace, until time.Time) (sent int) {
	c := connect(t, url, role)
	r := rand.New(rand.NewPCG(seed, 47))
	subjects := hostileSubjects
	if role == "operator" {
		subjects = operatorSubjects
	}
	for time.Now().Before(until) {
		if !p.open.Load() {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		m := &nats.Msg{Subject: subjects[r.IntN(len(subjects))], Header: nats.Header{}}
		if role == "operator" && r.IntN(10) == 0 {
			m.Reply = operatorReplies[r.IntN(len(operatorReplies))]
		} else if role != "operator" && r.IntN(3) > 0 {
			m.Reply = hostileSubjects[r.IntN(len(hostileSubjects))]
		}
		payload := hostilePayloads[r.IntN(len(hostilePayloads))]
		m.Data = []byte(strings.ReplaceAll(payload, "V", fmt.Sprint(r.IntN(300))))
		for range r.IntN(3) { // flip some bytes
			if len(m.Data) > 0 {
				m.Data[r.IntN(len(m.Data))] = byte(r.IntN(256))
			}
		}
		if r.IntN(4) == 0 {
			id := fmt.Sprint(
				"tick/",
				time.Now().UnixNano()/int64(100*time.Millisecond)+r.Int64N(50),
			)
			m.Header.Set(jetstream.MsgIDHeader, id)
		}
		if err := c.PublishMsg(m); err != nil {
			continue // a subject that the client itself refuses
		}
		if sent++; sent%50 == 0 {
			_ = c.FlushTimeout(10 * time.Second)
			time.Sleep(10 * time.Millisecond) // the machine has other tests
		}
	}
	return sent
}

// catchUp configures the initial communities again, and waits until the run has published an
// estimate from after that.
func catchUp(t *testing.T, url string, patience time.Duration) {
	t.Helper()
	operator := connect(t, url, "operator")
	publish(t, operator.js, 2)
	configured := configure(t, operator.js)
	publish(t, operator.js, 3)
	for end := time.Now().Add(patience); ; {
		m, err := operator.Request(
			"gqlest.query.latest",
			[]byte(`{"community": "everyone"}`),
			10*time.Second,
		)
		var answer struct {
			Estimates []struct {
				Position uint64 `json:"position"`
			} `json:"estimates"`
		}
		if err == nil && json.Unmarshal(m.Data, &answer) == nil && len(answer.Estimates) > 0 &&
			answer.Estimates[0].Position > configured {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited %v for an estimate after position %d: %v", patience, configured, m)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// recordsOf returns the estimates of the stream of estimates, in its order, and how many messages
// somebody had written among them, which are of no batch.
func recordsOf(t *testing.T, url string) (records []string, foreign int) {
	t.Helper()
	c := connect(t, url, "worker")
	stream, err := c.js.Stream(t.Context(), "GQL_ESTIMATES")
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := c.js.OrderedConsumer(
		t.Context(),
		"GQL_ESTIMATES",
		jetstream.OrderedConsumerConfig{},
	)
	if err != nil {
		t.Fatal(err)
	}
	for last := stream.CachedInfo().State.LastSeq; ; {
		m, err := consumer.Next()
		if err != nil {
			t.Fatal(err)
		}
		if m.Headers().Get("Nats-Batch-Id") == "" {
			foreign++
		} else if strings.HasPrefix(m.Subject(), "gqlest.estimate.") {
			records = append(records, strings.TrimSpace(string(m.Data())))
		}
		if at, err := m.Metadata(); err != nil {
			t.Fatal(err)
		} else if at.Sequence.Stream == last {
			return records, foreign
		}
	}
}

// Hostile producers and readers and a faulty program of an operator send messages, queries and
// reply subjects. The pipeline must go on. Its output log must hold exactly the records that a
// replay of the log publishes.
func TestHostileClientsChangeNothingOfTheHistory(t *testing.T) {
	url := startWithPermissions(t)
	dir := t.TempDir()
	output := filepath.Join(dir, "estimates.ndjson")
	config := testfile.Write(t, filepath.Join(dir, "gqlstream.yaml"), `
classes: [left, right]
step: {every: 100ms, emit_every: 100ms}
emit: {threshold: 0}
communities: [{name: everyone, everyone: true}, {name: berlin}]
state: `+filepath.Join(dir, "state")+`
privacy: {min_members: 2}
output: {file: `+output+`}
alerts: [{name: many, when: point > 0.99}]
notify: {webhooks: [{name: ops, url: "http://127.0.0.1:1/"}]}
nats:
  url: "`+urlOf(url, "worker")+`"
  answers: {url: "`+urlOf(url, "answers")+`"}
http: {listen: "127.0.0.1:0"}
`)
	run := startProgram(t, "run", "--config", config)
	page := run.page(t)
	copyStreams(t, url)
	publish(t, connect(t, url, "operator").js, 1)
	seconds := campaign.Size(t, "GQLSTREAM_HOSTILE_SECONDS", hostileSeconds)
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	sent, p := make(chan int), pace{}
	roles := []string{"producer", "reader", "answers", "copies", "operator"}
	for i, role := range roles {
		go func() { sent <- attack(t, url, role, campaign.Seed(t, 0)+uint64(i), &p, until) }()
	}
	p.keep(t, url, page, until)
	n := 0
	for range roles {
		n += <-sent
	}
	t.Logf(
		"%d hostile messages in %d bursts, %d in the log; the run worked %v of %d s", n, p.bursts,
		p.logged, p.working.Round(time.Millisecond), seconds,
	)
	catchUp(t, url, 5*time.Minute)
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	run.ended(t)
	replay := exec.Command(program, "replay", "--config", config)
	var said bytes.Buffer
	begun := time.Now()
	replay.Stderr = &said
	again, err := replay.Output()
	took := time.Since(begun)
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	lines := func(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
	published, replayed := lines(text(t, output)), lines(string(again))
	if len(published) > len(replayed) || !slices.Equal(published, replayed[:len(published)]) {
		t.Errorf(
			"%d records published, %d replayed, and they differ",
			len(published),
			len(replayed),
		)
	}
	if len(replayed)-len(published) > 8 { // of the last emission, which the end cut short
		t.Errorf("%d records of %d are missing", len(replayed)-len(published), len(replayed))
	}
	kept, foreign := recordsOf(t, url)
	estimates := slices.DeleteFunc(slices.Clone(published), func(line string) bool {
		return strings.HasPrefix(line, `{"note":`)
	})
	if from := len(estimates) - len(kept); from < 0 || !slices.Equal(kept, estimates[from:]) {
		t.Errorf(
			"the output log holds %d records, the file %d, and they differ",
			len(kept),
			len(estimates),
		)
	}
	t.Logf(
		"%d records equal to the replay, which took %v; %d acknowledgements among them are ignored",
		len(published), took.Round(time.Millisecond), foreign,
	)
}
