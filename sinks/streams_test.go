package sinks

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// No stream may be compressed, one of an earlier version neither: after kill -9 a server of
// version 2.15.2 went on behind a block that it had compressed, and could not read it any more
// ("error reading compression reader: s2: unsupported input"), so that its copy was lost.
func TestNoStreamIsCompressed(t *testing.T) {
	l := startLogOut(t)
	streams := StreamsConfig{Names: DefaultNames()}
	for _, want := range []jetstream.StreamConfig{streams.estimates(), streams.alerts(), streams.history(minutes), streams.latest()} {
		former := want
		former.Compression = jetstream.S2Compression
		if _, err := l.js.CreateStream(t.Context(), former); err != nil {
			t.Fatal(err)
		}
		if _, err := ensureStream(t.Context(), l.js, want); err != nil {
			t.Fatal(err)
		}
		stream, err := l.js.Stream(t.Context(), want.Name)
		if err != nil {
			t.Fatal(err)
		}
		if c := stream.CachedInfo().Config.Compression; c != jetstream.NoCompression {
			t.Errorf("%s has compression %v", want.Name, c)
		}
	}
}
