package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
)

// A pipeline that loses the volume of its state, of its broker or of both must go on as
// docs/operations.md says. Without its state it reads the log again. If the log was purged, it
// names the missing part. With an empty broker it does not create a log, and asks for the backup. A
// restored backup continues, without the events since the backup.
func TestLostVolumes(t *testing.T) {
	for _, lost := range []string{"state", "broker", "both"} {
		for _, purged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, purged=%v", lost, purged), func(t *testing.T) {
				t.Parallel()
				loseVolume(t, lost, purged)
			})
		}
	}
}

func loseVolume(t *testing.T, lost string, purged bool) {
	d := newDrill(t, true)
	for range 3 {
		d.publishMore(20)
		mustRun(t, d.command("run", "--exit-when-drained")...)
	}
	if purged {
		mustRun(t, d.command("purge")...)
	}
	copied := filepath.Join(t.TempDir(), "backup")
	mustRun(t, d.command("backup", copied)...)
	d.publishMore(15) // not in the backup
	mustRun(t, d.command("run", "--exit-when-drained")...)
	before := d.lastSequence()
	begun := time.Now()
	if lost != "state" {
		d.freshServer()
	}
	if lost == "broker" {
		code, _, said := runCommand(d.command("run", "--exit-when-drained")...)
		if code == exitFine || !strings.Contains(said, "the broker has no log") {
			t.Fatalf("a run over an empty broker: exit %d\n%s", code, said)
		}
		if d.lastSequence() != 0 {
			t.Fatal("a run with a state has made an empty log")
		}
	}
	old := d.dir
	d.dir = filepath.Join(t.TempDir(), "state") // moved away, or gone
	switch {
	case lost != "state":
		mustRun(t, d.command("restore", copied)...)
	case purged:
		code, _, said := runCommand(d.command("run", "--exit-when-drained")...)
		if code == exitFine || !strings.Contains(said, "are gone") {
			t.Fatalf("a run without its state over a purged log: exit %d\n%s", code, said)
		}
		// only the state of the backup is put back: the log has all since
		if err := os.RemoveAll(d.dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(d.dir, os.DirFS(filepath.Join(copied, backupState))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(old); err != nil {
		t.Fatal(err)
	}
	after := d.lastSequence()
	d.goesOn(purged)
	t.Logf(
		"went on after %v; of %d messages %d are lost", time.Since(begun).Round(time.Millisecond),
		before, before-after,
	)
	if lost == "state" && after < before {
		t.Errorf("%d messages are lost with the state", before-after)
	}
}

// lastSequence returns the last sequence of the log, 0 if there is none.
func (d *drill) lastSequence() (last uint64) {
	d.t.Helper()
	nc, err := broker.Connect(broker.ConnectConfig{URL: d.url})
	if err != nil {
		d.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		d.t.Fatal(err)
	}
	s, err := js.Stream(d.t.Context(), broker.DefaultStreamNames().Log)
	if err != nil {
		return 0
	}
	return s.CachedInfo().State.LastSeq
}
