package request

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// openServer starts a server of the test's own, and returns JetStream of a connection to it.
func openServer(t *testing.T, options *server.Options) (*server.Server, jetstream.JetStream) {
	t.Helper()
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", -1, true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nc.Close()
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s, js
}

// An error of JetStream gives advice.
func TestErrorsOfJetStreamGiveAdvice(t *testing.T) {
	want := jetstream.StreamConfig{Name: "GQL", Subjects: []string{"gql.>"}}
	_, js := openServer(t, &server.Options{})
	if _, err := EnsureStream(t.Context(), js, want); err == nil ||
		!strings.Contains(err.Error(), "JetStream is off") {
		t.Errorf("without JetStream: %v", err)
	}
	s, js := openServer(t, &server.Options{JetStream: true, StoreDir: t.TempDir()})
	limits := server.JetStreamAccountLimits{
		MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1,
		MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1, MaxBytesRequired: true,
	}
	tiers := map[string]server.JetStreamAccountLimits{"": limits}
	if err := s.GlobalAccount().UpdateJetStreamLimits(tiers); err != nil {
		t.Fatal(err)
	}
	_, err := EnsureStream(t.Context(), js, want)
	if !BytesRequired(err) || !strings.Contains(err.Error(), "nats.log_bytes_max") {
		t.Errorf("limits are required: %v", err)
	}
	want.MaxBytes = 1 << 20
	if _, err := EnsureStream(t.Context(), js, want); err != nil {
		t.Errorf("with a limit: %v", err)
	}
}
