package sinks

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// One damaged copy of three must be found by the name of its server, though it follows and all
// others are whole.
func TestADamagedReplicaIsNamed(t *testing.T) {
	c := startCluster(t)
	l := c.connect()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	stream, err := l.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "KEPT", Subjects: []string{"kept"}, Replicas: 3, Storage: jetstream.FileStorage,
	})
	if err != nil {
		t.Fatal(err)
	}
	const messages = 3000
	for i := range messages {
		m := fmt.Appendf(nil, "%06d%s", i, strings.Repeat("x", 8000)) // several blocks
		if _, err := l.js.PublishAsync("kept", m); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-l.js.PublishAsyncComplete():
	case <-ctx.Done():
		t.Fatal("not all messages are stored")
	}
	l.awaitProbes(ctx, t, map[string]bool{"n0": false, "n1": false, "n2": false})
	info, err := stream.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	victim := 0
	for i := range c.options {
		if c.options[i].ServerName != info.Cluster.Leader {
			victim = i
		}
	}
	c.servers[victim].Shutdown()
	c.servers[victim].WaitForShutdown()
	c.damage(victim, "KEPT")
	c.start(victim)
	want := map[string]bool{}
	for i, o := range c.options {
		want[o.ServerName] = i == victim
	}
	l.awaitProbes(ctx, t, want)
}

// awaitProbes probes until every server has been named, and whether each lacks messages is as
// wanted.
func (l *logOut) awaitProbes(ctx context.Context, t *testing.T, want map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for ctx.Err() == nil && len(seen) < len(want) {
		r, err := request.ProbeReplica(ctx, l.js, "KEPT", 0)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if lacks := r.Lacks > 0; lacks == want[r.Server] {
			seen[r.Server] = true
		} else {
			t.Logf("%+v", r)
			delete(seen, r.Server)
			time.Sleep(100 * time.Millisecond) // it may still catch up
		}
	}
	if len(seen) < len(want) {
		t.Fatalf("probed %v, want %v", seen, want)
	}
}

// damage flips a bit in the middle of the first block that a server keeps of a stream, which is not
// running, and removes its index, as if it had been killed.
func (c *cluster) damage(i int, stream string) {
	c.t.Helper()
	done := false
	err := filepath.WalkDir(
		c.options[i].StoreDir,
		func(path string, e fs.DirEntry, err error) error {
			if err != nil || !strings.Contains(path, "/streams/"+stream+"/msgs/") {
				return err
			}
			if filepath.Base(path) == "index.db" {
				return os.Remove(path)
			}
			if filepath.Base(path) != "1.blk" {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			at := bytes.Index(data[len(data)/2:], []byte("xxxxxxxx"))
			data[len(data)/2+at] ^= 1
			done = true
			return os.WriteFile(path, data, 0o600)
		},
	)
	if err != nil || !done {
		c.t.Fatalf("damaged %v, %v", done, err)
	}
}
