package ingest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// laggingCopy returns JetStream as seen through a copy of the log that has no message yet: it
// passes every request on to the leader, but answers the direct ones itself, "not found". As often
// as stale says it answers for the stream like a leader that has stored only one message so far.
func laggingCopy(t *testing.T, leader *nats.Conn, stale int) jetstream.JetStream {
	t.Helper()
	prefix := nats.NewInbox()[1:]
	_, err := leader.Subscribe(prefix+".>", func(m *nats.Msg) {
		asked := strings.TrimPrefix(m.Subject, prefix)
		if strings.HasPrefix(asked, ".DIRECT.GET.") {
			_ = m.RespondMsg(
				&nats.Msg{
					Header: nats.Header{"Status": {"404"}, "Description": {"Message Not Found"}},
				},
			)
			return
		}
		if strings.HasPrefix(asked, ".CONSUMER.MSG.NEXT.") {
			return // nobody reads through it
		}
		answer, err := leader.Request("$JS.API"+asked, m.Data, time.Minute)
		if err != nil {
			t.Errorf("the leader does not answer %s: %v", asked, err)
			return
		}
		if strings.HasPrefix(asked, ".STREAM.INFO.") && stale > 0 {
			stale--
			answer.Data = staleInfo(t, answer.Data)
		}
		_ = m.Respond(answer.Data)
	})
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.NewWithAPIPrefix(leader, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// staleInfo changes a server's description of a stream into that of a lagging leader of
// three.
func staleInfo(t *testing.T, info []byte) []byte {
	t.Helper()
	var said map[string]any
	if err := json.Unmarshal(info, &said); err != nil {
		t.Error(err)
	}
	said["config"].(map[string]any)["num_replicas"] = 3
	said["state"].(map[string]any)["last_seq"] = 1
	stale, err := json.Marshal(said)
	if err != nil {
		t.Error(err)
	}
	return stale
}

// A newly elected leader may not have stored the newest messages yet. If it reports a log that ends
// before the position already read, the reader must ask again: at a restart, and when it continues.
func TestALeaderThatLagsIsAskedAgain(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	id, err := identityOf(t, b.js, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Check(testContext(t), laggingCopy(t, b.nc, 2)); err != nil {
		t.Errorf("a restart: %v", err)
	}
	source, err := OpenJetStream(
		testContext(t),
		laggingCopy(t, b.nc, 2),
		testDecoder(t),
		JetStreamConfig{
			From: Resume{Position: id.Position}, Identity: &id,
		},
	)
	if err != nil {
		t.Fatalf("a reader: %v", err)
	}
	source.Close()
}

// Messages that a lagging copy does not have yet must not be reported as gone. This holds for the
// place of a checkpoint, and for the message that a restart finds there.
func TestALaggingCopyIsNotBelieved(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	js := laggingCopy(t, b.nc, 0)
	stream, err := js.Stream(testContext(t), "GQL")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.GetMsg(testContext(t), 2); err == nil {
		t.Fatal("the copy does not lag")
	}
	id, err := identityOf(t, js, 2)
	if err != nil {
		t.Fatalf("the place of a checkpoint: %v", err)
	}
	if err := id.Check(testContext(t), js); err != nil {
		t.Errorf("a restart at the place: %v", err)
	}
}

// identityOf reads the identity of a log at a position.
func identityOf(t *testing.T, js jetstream.JetStream, p event.Position) (Identity, error) {
	t.Helper()
	s, err := js.Stream(testContext(t), "GQL")
	if err != nil {
		t.Fatal(err)
	}
	return identityAt(testContext(t), s, p)
}
