package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"gqlstream/ingest/broker"
	"gqlstream/pipeline/config"
)

// drill is a pipeline that is to be backed up and restored.
type drill struct {
	*history
	outside bool
	url     string // of the outside server; empty: the embedded one
}

func newDrill(t *testing.T, outside bool) *drill {
	d := &drill{history: newHistory(t, rand.NewPCG(7, 3), crashConfig), outside: outside}
	d.freshServer()
	return d
}

// freshServer gives an outside drill an empty server.
func (d *drill) freshServer() {
	if !d.outside {
		return
	}
	s := startNATS(d.t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: d.t.TempDir(),
		NoSigs:     true,
		SyncAlways: true,
	})
	d.url = s.ClientURL()
}

// command returns a command line on the pipeline.
func (d *drill) command(name string, args ...string) []string {
	line := []string{name, "--config", d.config, "--state", d.dir}
	if d.url != "" {
		line = append(line, "--nats", d.url)
	}
	return append(line, args...)
}

func (d *drill) publishMore(messages int) {
	d.t.Helper()
	settings := config.Settings{State: d.dir}
	settings.NATS.URL = d.url
	b, err := config.OpenBroker(settings, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	defer b.Close()
	if _, err := broker.EnsureLog(d.t.Context(), b.JS, broker.DefaultStreamNames()); err != nil {
		d.t.Fatal(err)
	}
	d.send(b, messages)
}

// live has a run go on while something is done; an embedded server is open at the URL meanwhile.
func (d *drill) live(do func()) {
	d.t.Helper()
	args, url := d.command("run"), d.url
	if !d.outside {
		address := freeAddress(d.t)
		args, d.url = append(args, "--listen", address), "nats://"+address
	}
	process := exec.Command(os.Args[0], args...)
	process.Env = append(os.Environ(), mainVariable+"=1")
	said := &strings.Builder{}
	process.Stderr = said
	if err := process.Start(); err != nil {
		d.t.Fatal(err)
	}
	deadline := time.Now().Add(crashStartMax)
	for broken := true; broken && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		nc, err := broker.Connect(broker.ConnectConfig{URL: d.url})
		if broken = err != nil; err == nil {
			nc.Close()
		}
	}
	do()
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		d.t.Fatalf("run: %v\n%s", err, said)
	}
	d.url = url
}

// A pipeline restored from a backup must go on as if nothing had happened, and publish the records
// that a replay gives. Every combination is tested: an embedded or an outside server, a backup
// during or after a run, with and without a purge. The original state and broker are lost each
// time.
func TestBackupsAreRestored(t *testing.T) {
	for i := range 8 {
		outside, purged, hot := i&1 > 0, i&2 > 0, i&4 > 0
		t.Run(fmt.Sprintf("outside=%v purged=%v hot=%v", outside, purged, hot), func(t *testing.T) {
			t.Parallel()
			d := newDrill(t, outside)
			for range 3 {
				d.publishMore(30)
				mustRun(t, d.command("run", "--exit-when-drained")...)
			}
			if purged {
				mustRun(t, d.command("purge")...)
			}
			copied := filepath.Join(t.TempDir(), "backup")
			d.backUp(copied, hot)
			d.dir = filepath.Join(t.TempDir(), "restored")
			d.freshServer()
			begun := time.Now()
			mustRun(t, d.command("restore", copied)...)
			d.goesOn(purged)
			t.Logf("restored and read in %v", time.Since(begun).Round(time.Millisecond))
		})
	}
}

// backUp makes a backup. A damaged copy of it must be refused.
func (d *drill) backUp(copied string, hot bool) {
	d.t.Helper()
	if hot {
		d.live(func() {
			d.publishMore(20)
			mustRun(d.t, d.command("backup", copied)...)
			d.publishMore(20)
		})
	} else {
		mustRun(d.t, d.command("backup", copied)...)
	}
	damaged := filepath.Join(d.t.TempDir(), "damaged")
	if err := os.CopyFS(damaged, os.DirFS(copied)); err != nil {
		d.t.Fatal(err)
	}
	path := filepath.Join(damaged, backupStreams, "GQL"+streamSuffix)
	data, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		d.t.Fatal(err)
	}
	empty := []string{"restore", "--state", filepath.Join(d.t.TempDir(), "none"), damaged}
	if code, _, said := runCommand(empty...); code != exitFailed ||
		!strings.Contains(said, "GQL.packed") {
		d.t.Errorf("a damaged backup: exit %d\n%s", code, said)
	}
	again := d.command("restore", copied)
	if code, _, said := runCommand(again...); code != exitUsage ||
		!strings.Contains(said, "already") {
		d.t.Errorf("a restore over what is there: exit %d\n%s", code, said)
	}
}

// goesOn runs over more events and compares the output log with a replay.
func (d *drill) goesOn(purged bool) {
	d.t.Helper()
	d.publishMore(30)
	output := filepath.Join(d.t.TempDir(), "estimates.ndjson")
	mustRun(d.t, d.command("run", "--exit-when-drained", "--output", output)...)
	text, err := os.ReadFile(output)
	if err != nil {
		d.t.Fatal(err)
	}
	published := strings.Split(strings.TrimSpace(string(text)), "\n")
	replay := d.command("replay")
	if purged {
		replay = append(replay, "--use-checkpoint")
	}
	out, _ := mustRun(d.t, replay...)
	replayed := strings.Split(strings.TrimSpace(out), "\n")
	if purged && len(replayed) < len(published) {
		published = published[len(published)-len(replayed):]
	}
	if len(out) == 0 && purged {
		return // the newest checkpoint is at the end
	}
	if !slices.Equal(replayed, published) {
		d.t.Errorf("%d records are published, and a replay has %d", len(published), len(replayed))
	}
}
