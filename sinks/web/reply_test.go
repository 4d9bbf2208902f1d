package web

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// An answer must go to an inbox alone: otherwise a client with the right to ask could make
// a run write to the subjects of its own log and estimates. Refused replies are counted. (The
// server itself refuses replies to the API of JetStream.)
func TestAnswersGoToInboxesAlone(t *testing.T) {
	connect := startNATS(t)
	s := serve(t, nil)
	write(t, s, estimate("b", "auto", 1, 0.5))
	stop := answerOn(t, s, connect())
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	client := connect()
	written, err := client.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	refused := uint64(0)
	for _, question := range []string{
		"gqlest.query.info", "gqlest.query.list", "gqlest.query.latest", "gqlest.query.explain",
		"gqlest.query.history", "$SRV.PING", "$SRV.INFO", "$SRV.STATS.gqlstream",
	} {
		for _, reply := range []string{
			"gql.skip.11", "gql.control", "gqlest.shard.0", "gqlest.estimate.b.auto", "gqlq.edge",
			"gqlest.alert.x.y", "$KV.gql_estimates.b.auto", "_INBOXES.x", "x._INBOX.y",
			"gqlest.query.none",
		} {
			if err := client.PublishRequest(question, reply, nil); err != nil {
				t.Fatal(err)
			}
			refused++
			if m, err := written.NextMsg(10 * time.Second); err != nil || m.Subject != question {
				t.Fatalf("%v, %v", m, err)
			}
		}
	}
	// Questions of an endpoint are answered in turn, so that all before this one were looked at.
	if _, err := client.Request("gqlest.query.info", nil, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); s.repliesRefused.Load() < refused; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d refused replies are counted", s.repliesRefused.Load(), refused)
		}
		time.Sleep(time.Millisecond)
	}
	if err := client.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := written.NextMsg(200 * time.Millisecond)
		if err != nil {
			break
		}
		if m.Subject != "gqlest.query.info" && len(m.Data) > 0 && m.Header == nil &&
			m.Subject[:7] != "_INBOX." {
			t.Errorf("an answer was written on %s", m.Subject)
		}
	}
}

// A prefix of inboxes that clients were given by their permissions must be answered where it is
// configured, and tools must find the service and its counts.
func TestConfiguredInboxesAreAnswered(t *testing.T) {
	connect := startNATS(t)
	s := serve(t, nil)
	nc := connect()
	stop, err := s.AnswerOn(nc, "gqlest.query", "_INBOX_reader", "desk.answers.")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	client := connect()
	ask := func(question, reply string) *nats.Msg {
		sub, err := client.SubscribeSync(reply)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.PublishRequest(question, reply, nil); err != nil {
			t.Fatal(err)
		}
		m, err := sub.NextMsg(time.Second)
		if err != nil {
			return nil
		}
		return m
	}
	for reply, want := range map[string]bool{
		"_INBOX_reader.abc": true, "desk.answers.1": true, "_INBOX.abc": false,
		"desk.answer": false,
	} {
		if got := ask("gqlest.query.info", reply) != nil; got != want {
			t.Errorf("%s is answered: %t", reply, got)
		}
	}
	var stats micro.Stats
	m := ask("$SRV.STATS", "desk.answers.2")
	if m == nil {
		t.Fatal("no statistics")
	}
	if err := json.Unmarshal(m.Data, &stats); err != nil || len(stats.Endpoints) != 5 ||
		stats.Endpoints[0].NumRequests != 2 {
		t.Errorf("%v: %s", err, m.Data)
	}
}
