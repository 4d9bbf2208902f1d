package ingest

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// laggingCopy returns JetStream as seen through a copy of the log that has no message yet: it
// passes every request on to the leader, but answers the direct ones itself, "not found".
func laggingCopy(t *testing.T, leader *nats.Conn) jetstream.JetStream {
	t.Helper()
	const prefix = "lagging"
	_, err := leader.Subscribe(prefix+".>", func(m *nats.Msg) {
		asked := strings.TrimPrefix(m.Subject, prefix)
		if strings.HasPrefix(asked, ".DIRECT.GET.") {
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"404"}, "Description": {"Message Not Found"}}})
			return
		}
		answer, err := leader.Request("$JS.API"+asked, m.Data, time.Minute)
		if err != nil {
			t.Errorf("the leader does not answer %s: %v", asked, err)
			return
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

// What a copy that lags does not have yet must not be said to be gone: neither the place of a
// checkpoint, nor the message that a restart finds at that place.
func TestALaggingCopyIsNotBelieved(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	js := laggingCopy(t, b.nc)
	stream, err := js.Stream(testContext(t), "GQL")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.GetMsg(testContext(t), 2); err == nil {
		t.Fatal("the copy does not lag")
	}
	id, err := IdentityAt(testContext(t), js, "GQL", 2)
	if err != nil {
		t.Fatalf("the place of a checkpoint: %v", err)
	}
	if err := id.Check(testContext(t), js); err != nil {
		t.Errorf("a restart at the place: %v", err)
	}
}
