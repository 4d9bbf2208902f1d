//go:build unix

package broker

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// fileBytesMax stops files of this process from growing beyond n bytes, as on a full disk,
// until the next call. The returned function removes the limit.
func fileBytesMax(t *testing.T, n uint64) (undo func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	now := before
	now.Cur = n
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
	undo = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(undo)
	return undo
}

// A server with a full disk must say so, and say when there is room again. After a restart
// the log must have every acknowledged event once.
func TestEmbeddedServerReportsFreeSpace(t *testing.T) {
	ctx := testContext(t)
	b := bareBroker(t, EmbeddedConfig{})
	if err := EnsureStreams(ctx, b.js, DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	acknowledged, n := map[uint64]int{}, 0
	publish := func(wait time.Duration) bool {
		given, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		n++
		m := nats.NewMsg("gql.edge")
		m.Header.Set(jetstream.MsgIDHeader, fmt.Sprint(n))
		m.Data = fmt.Appendf(nil, `{"src":%d,"dst":0,"note":%q}`, n, strings.Repeat("x", 4000))
		ack, err := b.js.PublishMsg(given, m)
		if err == nil {
			acknowledged[ack.Sequence] = n
		}
		return err == nil
	}
	room := fileBytesMax(t, 64<<10)
	for b.WriteError() == "" {
		publish(200 * time.Millisecond)
	}
	for range 10 {
		if publish(200 * time.Millisecond) {
			t.Fatal("an event was taken on a full disk")
		}
	}
	if reason := b.WriteError(); !strings.Contains(reason, "file too large") {
		t.Errorf("the server says %q", reason)
	}
	if b.CheckSpace() == nil {
		t.Error("it has room on a full disk")
	}
	room()
	if err := b.CheckSpace(); err != nil || b.WriteError() == "" {
		t.Fatalf("it has no room, %v, or goes on without a start", err)
	}
	b.stop()
	b = bareBroker(t, EmbeddedConfig{Dir: b.dir})
	if !publish(time.Minute) || b.WriteError() != "" {
		t.Errorf("when there is room: %q", b.WriteError())
	}
	checkStored(t, b, acknowledged)
	if entries, err := os.ReadDir(filepath.Join(b.dir, storeDir)); err != nil || len(entries) != 1 {
		t.Errorf("beside the store there are %v, %v", entries, err)
	}
}

// checkStored checks that the log has every acknowledged event at its position, and no
// event twice.
func checkStored(t *testing.T, b *testBroker, acknowledged map[uint64]int) {
	t.Helper()
	s, err := b.js.Stream(testContext(t), "GQL")
	if err != nil {
		t.Fatal(err)
	}
	state, seen := s.CachedInfo().State, map[string]bool{}
	for i := state.FirstSeq; i <= state.LastSeq; i++ {
		m, err := s.GetMsg(testContext(t), i)
		if err != nil {
			t.Fatal(err)
		}
		id := m.Header.Get(jetstream.MsgIDHeader)
		if want, ok := acknowledged[i]; ok && id != fmt.Sprint(want) || seen[id] {
			t.Errorf("message %d has the id %s, want %d", i, id, want)
		}
		delete(acknowledged, i)
		seen[id] = true
	}
	if len(acknowledged) > 0 || state.FirstSeq != 1 || state.LastSeq > math.MaxInt32 {
		t.Errorf(
			"of messages %d to %d %d are gone that were acknowledged", state.FirstSeq,
			state.LastSeq, len(acknowledged),
		)
	}
	t.Logf("%d messages", len(seen))
}
