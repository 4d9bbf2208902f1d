package broker

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
)

// A single server must keep one copy by default. A stream with fewer copies than configured
// must be refused with advice.
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
		"none: ":      {URL: "nats://127.0.0.1:1", Credentials: "none"},
	} {
		if _, err := Connect(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
	}
}

// The file of the credentials may hold the seed of an nkey, from which a server knows the
// client.
func TestCredentialsMayBeAnNkey(t *testing.T) {
	const seed, public = "SUAORCPZJKB3XWYQQKNC3DRYWX72MEBJRNEB3GZ7J6J25ES5IJCX5KJG5I",
		"UCEQW3KZLPRVLRZYXX7EJ5JV6NO7JBJEZESTCI7PBQUHRHQZJTTMF6VR"
	s, err := server.NewServer(
		&server.Options{
			Host:   "127.0.0.1",
			Port:   server.RANDOM_PORT,
			NoSigs: true,
			NoLog:  true,
			Nkeys:  []*server.NkeyUser{{Nkey: public}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	file := filepath.Join(t.TempDir(), "seed")
	testfile.Write(t, file, seed)
	nc, err := Connect(ConnectConfig{URL: s.ClientURL(), Credentials: file})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if nc, err := Connect(ConnectConfig{URL: s.ClientURL()}); err == nil {
		nc.Close()
		t.Error("anybody may connect")
	}
}
