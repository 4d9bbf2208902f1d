package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
)

// testBroker is an embedded server and a connection to it.
type testBroker struct {
	t   *testing.T
	dir string
	*Embedded
	nc *nats.Conn
	js jetstream.JetStream
}

// startBroker starts a server with the default streams in dir, or in a new
// directory if that is empty.
func startBroker(t *testing.T, dir string) *testBroker {
	t.Helper()
	b := bareBroker(t, EmbeddedConfig{Dir: dir})
	if err := EnsureStreams(testContext(t), b.js, DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	return b
}

func bareBroker(t *testing.T, c EmbeddedConfig) *testBroker {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	e, err := StartEmbedded(c)
	if err != nil {
		t.Fatal(err)
	}
	b := &testBroker{t: t, dir: c.Dir, Embedded: e}
	t.Cleanup(b.stop)
	if b.nc, err = e.Connect(); err != nil {
		t.Fatal(err)
	}
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *testBroker) stop() {
	if b.nc != nil {
		b.nc.Close()
	}
	if err := b.Embedded.Close(); err != nil {
		b.t.Error(err)
	}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Without a listen address there must be no port, and everything stored must be
// there after a restart.
func TestEmbeddedServerHasNoPortAndKeepsItsStore(t *testing.T) {
	ctx, dir := testContext(t), t.TempDir()
	b := startBroker(t, dir)
	if url := b.URL(); url != "" {
		t.Errorf("listens on %s", url)
	}
	if _, err := b.js.Publish(ctx, "gql.edge", []byte(`{"src":1,"dst":2}`)); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b = startBroker(t, dir)
	s, err := b.js.Stream(ctx, "GQL")
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.LastSeq; n != 1 {
		t.Errorf("stream ends at %d after a restart, want 1", n)
	}
}

// A listen address must be reachable from outside the process, on loopback only.
func TestEmbeddedServerListensOnLoopbackOnly(t *testing.T) {
	b := bareBroker(t, EmbeddedConfig{Listen: "127.0.0.1:0"})
	nc, err := Connect(ConnectConfig{URL: b.URL()})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	for _, address := range []string{
		"0.0.0.0:4222", ":4222", "192.168.1.1:4222", "[::]:4222", "example.org:4222",
	} {
		_, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir(), Listen: address})
		if err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("listen %s: error %v, want one that says where to listen", address, err)
		}
	}
	for _, address := range []string{"4222", "localhost", "localhost:x", "localhost:70000"} {
		if _, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir(), Listen: address}); err == nil {
			t.Errorf("listen %s: no error", address)
		}
	}
}

// A port that is taken, and a store that cannot be used, must be an error at once
// that says so, and give the directory up again.
func TestEmbeddedServerThatCannotStartSaysWhy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir := t.TempDir()
	_, err = StartEmbedded(EmbeddedConfig{Dir: dir, Listen: listener.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("port in use: error %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(dir, "nats"), "a file")
	if _, err = StartEmbedded(EmbeddedConfig{Dir: dir}); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("store is a file: error %v", err)
	}
}

// A second owner must be refused at once with the name of the first one, whether that is in
// another process or in this one. Afterwards the directory is free.
func TestSecondOwnerOfADirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	holder := exec.CommandContext(testContext(t), os.Args[0])
	holder.Env = append(os.Environ(), holderVariable+"="+dir)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "held") {
		t.Fatalf("second process says %q, %v", line, err)
	}
	for range 2 {
		_, err = StartEmbedded(EmbeddedConfig{Dir: dir})
		if !errors.Is(err, ErrLocked) ||
			!strings.Contains(err.Error(), fmt.Sprint("pid ", holder.Process.Pid)) {
			t.Fatalf("error %v, want one that names process %d", err, holder.Process.Pid)
		}
	}
	in.Close()
	if err := holder.Wait(); err != nil {
		t.Fatal(err)
	}
	b := bareBroker(t, EmbeddedConfig{Dir: dir})
	if _, err := AcquireLock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock in one process: error %v", err)
	}
	b.stop()
	lock, err := AcquireLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// A process that is killed must not leave its directory locked.
func TestKilledOwnerLeavesNoLock(t *testing.T) {
	dir := t.TempDir()
	holder := exec.CommandContext(testContext(t), os.Args[0])
	holder.Env = append(os.Environ(), holderVariable+"="+dir)
	if _, err := holder.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	lock, err := AcquireLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// Impossible configurations must be refused with the mistake, and lock nothing.
func TestImpossibleEmbeddedConfigsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for want, c := range map[string]EmbeddedConfig{
		"state directory": {},
		"nowhere":         {Dir: dir, Listen: "nowhere"},
	} {
		if _, err := StartEmbedded(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("refused, and yet there is %v, %v", left, err)
	}
}

// A small disk must get smaller streams, not an error.
func TestSmallStoreGetsSmallStreams(t *testing.T) {
	const store = 64 << 20
	b := bareBroker(t, EmbeddedConfig{storeBytesMax: store})
	if err := EnsureStreams(testContext(t), b.js, DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	var reserved int64
	for _, name := range []string{"GQL_QUARANTINE"} {
		s, err := b.js.Stream(testContext(t), name)
		if err != nil {
			t.Fatal(err)
		}
		reserved += s.CachedInfo().Config.MaxBytes
	}
	if reserved <= 0 || reserved > store {
		t.Errorf("%d bytes reserved of %d", reserved, store)
	}
	if _, err := b.js.Publish(testContext(t), "gql.edge", []byte(`{"src":1,"dst":2}`)); err != nil {
		t.Error(err)
	}
}
