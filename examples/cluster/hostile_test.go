package cluster

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/lab/campaign"
)

// hostileSeconds is how long hostile clients try in an ordinary run of the tests.
const hostileSeconds = 3

// hostileSubjects are those that the clients publish on, ask on and want replies on.
var hostileSubjects = []string{
	"gql.edge", "gql.label", "gql.prediction", "gql.member", "gql.vertex", "gql.control", "gql.skip.1",
	"gql.skip.2-9", "gql.x", "gqlest.shard.0", "gqlest.shard.1", "gqlest.estimate.berlin.auto",
	"gqlest.alert.a.b", "gqlest.history.day.berlin.auto", "gqlq.edge", "$KV.gql_estimates.berlin.auto",
	"gqlest.query.info", "gqlest.query.list", "gqlest.query.latest", "gqlest.query.history",
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
	`{"vertex": V, "probabilities": [0.9, 0.1]}`, `{"vertex": V, "erase": true}`, `{"op": "flush"}`, `{"op": "skip", "position": 3}`,
	`{"op": "configure", "communities": []}`, `{"op": "checkpoint"}`, `{"op": "tick"}`,
	`{"community": "berlin"}`, `{"writer": {}, "position": 9, "part": 1, "parts": 1, "log": "x"}`,
	`{"name": "GQL", "subjects": ["gql.>"], "metadata": {"gqlstream.skipped": "1-9"}}`,
	`{"stream_name": "GQL_ESTIMATES", "config": {"deliver_subject": "gql.edge", "ack_policy": "none"}}`,
}

// attack has one client publish, ask and reply at random until the time is over.
func attack(t *testing.T, url, role string, seed uint64, until time.Time) (sent int) {
	c := connect(t, url, role)
	r := rand.New(rand.NewPCG(seed, 47))
	for time.Now().Before(until) {
		m := &nats.Msg{Subject: hostileSubjects[r.IntN(len(hostileSubjects))], Header: nats.Header{}}
		if r.IntN(3) > 0 {
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
			id := fmt.Sprint("tick/", time.Now().UnixNano()/int64(100*time.Millisecond)+r.Int64N(50))
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

// Whatever producers and readers publish, ask, and want replies on, the pipeline must go on, and what it
// published must be what a replay of its log publishes.
func TestHostileClientsChangeNothingOfTheHistory(t *testing.T) {
	url := startWithPermissions(t)
	dir := t.TempDir()
	output := filepath.Join(dir, "estimates.ndjson")
	config := write(t, filepath.Join(dir, "gqlstream.yaml"), `
classes: [left, right]
step: {every: 100ms, emit_every: 100ms}
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
	run.page(t)
	copyStreams(t, url)
	publish(t, connect(t, url, "operator").js, 1)
	seconds := campaign.Size(t, "GQLSTREAM_HOSTILE_SECONDS", hostileSeconds)
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	sent := make(chan int)
	for i, role := range []string{"producer", "reader", "answers", "copies"} {
		go func() { sent <- attack(t, url, role, uint64(i), until) }()
	}
	n := 0
	for range 4 {
		n += <-sent
	}
	publish(t, connect(t, url, "operator").js, 2)
	reader := connect(t, url, "reader")
	await(t, "an answer after the attack", func() bool {
		_, err := reader.Request("gqlest.query.info", nil, 10*time.Second)
		return err == nil
	})
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	run.ended(t)
	replay := exec.Command(program, "replay", "--config", config)
	var said bytes.Buffer
	replay.Stderr = &said
	replayed, err := replay.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	lines := func(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
	published, again := lines(text(t, output)), lines(string(replayed))
	if len(published) > len(again) || !slices.Equal(published, again[:len(published)]) {
		t.Errorf("%d records published, %d replayed, and they differ", len(published), len(again))
	}
	if len(again)-len(published) > 8 { // of the last emission, which the end cut short
		t.Errorf("%d records of %d are missing", len(again)-len(published), len(again))
	}
	t.Logf("%d hostile messages, %d records equal to the replay", n, len(published))
}
