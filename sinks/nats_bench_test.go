package sinks

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

// One emission of 1,000 communities to the stream and to the bucket, on a server
// that syncs before it acknowledges, as the embedded one does, unless a stream says
// otherwise, as ours do.
func BenchmarkEmission(b *testing.B) {
	for _, mode := range []jetstream.PersistModeType{jetstream.DefaultPersistMode, jetstream.AsyncPersistMode} {
		b.Run(fmt.Sprint("stream/", mode), func(b *testing.B) { benchEmission(b, mode, false) })
		b.Run(fmt.Sprint("bucket/", mode), func(b *testing.B) { benchEmission(b, mode, true) })
	}
}

func benchEmission(b *testing.B, mode jetstream.PersistModeType, bucket bool) {
	s, err := server.NewServer(&server.Options{
		ServerName: "bench", DontListen: true, JetStream: true, StoreDir: b.TempDir(), NoSigs: true,
		SyncAlways: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	for _, config := range []jetstream.StreamConfig{
		{Name: "GQL_ESTIMATES", Subjects: []string{"gqlest.>"}, PersistMode: mode},
		{Name: "KV_gql_estimates", Subjects: []string{"$KV.gql_estimates.>"}, PersistMode: mode, MaxMsgsPerSubject: 1},
	} {
		if _, err := js.CreateStream(ctx, config); err != nil {
			b.Fatal(err)
		}
	}
	var sink Sink
	if bucket {
		sink, err = NewLatest(nc, NATSConfig{Log: "log"})
	} else {
		sink, err = NewNATS(nc, NATSConfig{Log: "log"})
	}
	if err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	estimates := make([]quant.Estimate, 1000)
	position := uint64(0)
	for b.Loop() {
		position++
		for i := range estimates {
			estimates[i] = estimate(fmt.Sprintf("community-%04d", i), "auto", position)
		}
		if err := sink.Write(ctx, estimates); err != nil {
			b.Fatal(err)
		}
	}
}
