package broker

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// One server alone must keep one copy unless told otherwise, and a stream with fewer copies
// than it shall have must be refused with what to do.
func TestReplicasOfOneServer(t *testing.T) {
	b, ctx := startBroker(t, ""), testContext(t)
	if n := replicasOf(ctx, t, b.js, "GQL"); n != 1 {
		t.Errorf("%d replicas", n)
	}
	names := DefaultStreamNames()
	names.Replicas = 3
	err := EnsureStreams(ctx, b.js, names)
	if err == nil || !strings.Contains(err.Error(), "nats stream edit GQL --replicas 3") {
		t.Errorf("error %v", err)
	}
}

func replicasOf(ctx context.Context, t *testing.T, js jetstream.JetStream, name string) int {
	t.Helper()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().Config.Replicas
}

func TestConnectOptionsThatDoNotFit(t *testing.T) {
	for want, c := range map[string]ConnectConfig{
		"go together": {URL: "nats://127.0.0.1:1", CertFile: "cert.pem"},
		"nkey in":     {URL: "nats://127.0.0.1:1", NKeyFile: "none"},
	} {
		if _, err := Connect(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
	}
}
