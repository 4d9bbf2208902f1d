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
	for _, want := range []jetstream.StreamConfig{
		streams.estimates(), streams.alerts(),
		streams.history(resolutions[0]), streams.latest(),
	} {
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

// Only a server that ends with the run may write the bucket after its acknowledgement. On
// another server the bucket is made again, since this setting cannot be changed.
func TestABucketOnAnotherServerIsWrittenAtOnce(t *testing.T) {
	l := startLogOut(t)
	for _, embedded := range []bool{true, false, false, true} {
		c := StreamsConfig{Names: DefaultNames(), Embedded: embedded}
		if err := ensureStreams(t.Context(), l.js, c); err != nil {
			t.Fatal(err)
		}
		stream, err := l.js.Stream(t.Context(), c.latest().Name)
		if err != nil {
			t.Fatal(err)
		}
		if async := stream.CachedInfo().Config.PersistMode == jetstream.AsyncPersistMode; async !=
			embedded {
			t.Errorf("embedded %v: written behind the acknowledgement %v", embedded, async)
		}
	}
}
