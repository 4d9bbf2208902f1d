package pipeline

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
)

// The file reached of an earlier release has no end of the output log. Its place must be read, and
// nothing of the output log is called lost. The end of a stream made again is not compared.
func TestReachedKnowsTheEndOfTheOutputLog(t *testing.T) {
	r := &reached{path: filepath.Join(t.TempDir(), "reached")}
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	made := time.Unix(7, 0)
	stream := func(made time.Time, last uint64) *jetstream.StreamInfo {
		return &jetstream.StreamInfo{Created: made, State: jetstream.StreamState{LastSeq: last}}
	}
	digest := ingest.Digest{Message: 1, Prefix: 2}
	if err := r.write(fmt.Sprintf("5 %s log", digest)); err != nil {
		t.Fatal(err)
	}
	if at, end, ok := r.read(); !ok || at.Position != 5 || at.Digest != digest ||
		at.log != "log" || end != (outputEnd{}) || r.lostOutput(stream(made, 0)) != 0 {
		t.Errorf("an earlier release: %+v, %+v, %v", at, end, ok)
	}
	r.made = made.UnixNano()
	id := ingest.Identity{Stream: "GQL", Position: 6, Digest: digest}
	if err := r.record(id, "log", 9); err != nil {
		t.Fatal(err)
	}
	if err := r.recordOutput(10); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		now  *jetstream.StreamInfo
		lost uint64
	}{
		{stream(made, 10), 0},
		{stream(made, 12), 0},
		{stream(made, 7), 3},
		{stream(made.Add(1), 7), 0},
	} {
		if lost := r.lostOutput(test.now); lost != test.lost {
			t.Errorf("%+v: lost %d, want %d", test.now, lost, test.lost)
		}
	}
	if at, _, ok := r.read(); !ok || at.Position != 6 || at.Digest != digest {
		t.Errorf("%+v, %v", at, ok)
	}
}
