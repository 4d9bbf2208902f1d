//go:build unix && !race

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/testfile"
	"gqlstream/sinks"
)

// nextRelease builds the program as a release with other derived tables would be.
var nextRelease = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gqlstream-next")
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs("../../internal/checkpoint/manifest.go")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	const line = "const Derived = %d\n"
	is, next := fmt.Sprintf(line, checkpoint.Derived), fmt.Sprintf(line, checkpoint.Derived+1)
	other := strings.Replace(string(text), is, next, 1)
	if other == string(text) {
		return "", fmt.Errorf("%s lacks %q", path, is)
	}
	file, overlay := filepath.Join(dir, "manifest.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: file}})
	if err == nil {
		err = os.WriteFile(file, []byte(other), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, replace, 0o600)
	}
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "gqlstream")
	said, err := exec.Command("go", "build", "-overlay", overlay, "-ldflags", "-s -w",
		"-o", program, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return program, nil
})

// program returns the command line of the next release, or of this one.
func (d *drill) program(next bool, args ...string) *exec.Cmd {
	d.t.Helper()
	if !next {
		process := exec.Command(os.Args[0], args...)
		process.Env = append(os.Environ(), mainVariable+"=1")
		return process
	}
	program, err := nextRelease()
	if err != nil {
		d.t.Fatal(err)
	}
	return exec.Command(program, args...)
}

var beginAgain = regexp.MustCompile(`msg="estimates begin again" position=(\d+)`)

// upgrade runs a release over the published log. It must compute everything again from the
// core tables. The records after the recompute event must be those of its replay.
func (d *drill) upgrade(next, purged bool) {
	d.t.Helper()
	d.publishMore(30)
	output := filepath.Join(d.t.TempDir(), "estimates.ndjson")
	begun := time.Now()
	said, err := d.program(next, d.command("run", "--exit-when-drained", "--output", output)...).
		CombinedOutput()
	took := time.Since(begun)
	found := beginAgain.FindStringSubmatch(string(said))
	if err != nil || found == nil || !strings.Contains(string(said), "computed again") ||
		strings.Contains(string(said), "damaged") {
		d.t.Fatalf("run after the upgrade: %v\n%s", err, said)
	}
	begins, _ := strconv.ParseUint(found[1], 10, 64)
	d.publishMore(30)
	again := d.program(next, d.command("run", "--exit-when-drained", "--output", output)...)
	said, err = again.CombinedOutput()
	if err != nil || strings.Contains(string(said), "computed again") {
		d.t.Fatalf("the second run after the upgrade: %v\n%s", err, said)
	}
	d.t.Logf("upgraded and ended after %v", took.Round(time.Millisecond))
	if purged {
		return // a replay cannot begin
	}
	text, err := os.ReadFile(output)
	if err != nil {
		d.t.Fatal(err)
	}
	replay := d.program(next, d.command("replay")...)
	replayed, err := replay.Output()
	if err != nil {
		d.t.Fatalf("replay: %v", err)
	}
	got, want := after(d.t, string(text), begins), after(d.t, string(replayed), begins)
	if len(got) == 0 || !slices.Equal(got, want) {
		d.t.Errorf("after the recompute event at %d there are %d records, and a replay has %d",
			begins, len(got), len(want))
	}
}

// after returns the records behind a position.
func after(t *testing.T, text string, position uint64) (lines []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var record struct {
			Position uint64 `json:"position"`
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if record.Position > position {
			lines = append(lines, line)
		}
	}
	return lines
}

// A release with other derived tables continues the state of this one, and this one continues the
// state of that one, with and without a purge, from the core tables: after the recompute event that
// the run publishes, records are those of a replay.
func TestUpgradeAndRollback(t *testing.T) {
	for _, purged := range []bool{false, true} {
		t.Run(fmt.Sprintf("purged=%v", purged), func(t *testing.T) {
			d := newDrill(t, false)
			for range 2 {
				d.publishMore(30)
				mustRun(t, d.command("run", "--exit-when-drained")...)
			}
			if purged {
				mustRun(t, d.command("purge")...)
			}
			d.upgrade(true, purged)
			d.upgrade(false, purged)
		})
	}
}

// upgradeGroup is a group with workers of changing releases.
type upgradeGroup struct {
	*drill
	js      jetstream.JetStream
	workers map[string]*exec.Cmd
	said    map[string]*spoken
}

func (g *upgradeGroup) start(next bool, names ...string) {
	g.t.Helper()
	for _, name := range names {
		dir := filepath.Join(g.dir, name)
		worker := g.program(next, "run", "--config", g.config, "--state", dir, "--nats", g.url,
			"--group", "g", "--worker", name)
		g.said[name] = newSpoken()
		worker.Stderr = g.said[name]
		if err := worker.Start(); err != nil {
			g.t.Fatal(err)
		}
		g.workers[name] = worker
	}
}

func (g *upgradeGroup) stop() {
	g.t.Helper()
	for name, worker := range g.workers {
		if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
			g.t.Fatal(err)
		}
		if err := worker.Wait(); err != nil {
			g.t.Errorf("%s: %v\n%s", name, err, g.said[name].now())
		}
		delete(g.workers, name)
	}
}

// caughtUp flushes the log and waits until all shards are published up to there.
func (g *upgradeGroup) caughtUp() time.Duration {
	g.t.Helper()
	begun := time.Now()
	ack, err := g.js.PublishMsg(g.t.Context(), controlMessage("flush", "checkpoint"))
	if err != nil {
		g.t.Fatal(err)
	}
	for {
		ctx, cancel := context.WithTimeout(g.t.Context(), 5*time.Second)
		marks, err := sinks.Marks(ctx, g.js, defaultNames())
		cancel()
		behind := slices.ContainsFunc(marks,
			func(m sinks.Mark) bool { return m.Position < ack.Sequence })
		if err == nil && len(marks) == upgradeShards && !behind {
			return time.Since(begun)
		}
		if time.Since(begun) > groupWaitMax {
			for name := range g.workers {
				g.t.Logf("%s:\n%s", name, g.said[name].now())
			}
			g.t.Fatalf("not published up to %d: %v, %v", ack.Sequence, marks, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

const upgradeShards = 4

// A group is upgraded, and rolled back, with and without a purge, also a worker with an empty disk:
// the workers agree and all shards are published.
func TestUpgradeAndRollbackOfAGroup(t *testing.T) {
	for _, purged := range []bool{false, true} {
		t.Run(fmt.Sprintf("purged=%v", purged), func(t *testing.T) {
			d := newDrill(t, true)
			testfile.Write(t, d.config, strings.Replace(crashConfig, crashStep,
				"step: {every: 100ms, emit_every: 100ms}", 1)+
				fmt.Sprintf("\ngroup: {shards: %d, copies: 2}\n", upgradeShards))
			nc, err := broker.Connect(broker.ConnectConfig{URL: d.url})
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			g := &upgradeGroup{d, js, map[string]*exec.Cmd{}, map[string]*spoken{}}
			g.start(false, "w0", "w1")
			for range 3 {
				time.Sleep(time.Second)
				g.publishMore(30)
				g.caughtUp()
			}
			g.stop()
			if purged {
				mustRun(t, "purge", "--config", d.config, "--state", filepath.Join(d.dir, "w0"),
					"--nats", d.url)
			}
			for i, next := range []bool{true, false} {
				g.start(next, "w0", "w1", fmt.Sprint("new", i)) // the last has an empty disk
				g.publishMore(30)
				t.Logf("published again after %v", g.caughtUp().Round(time.Millisecond))
				g.publishMore(30)
				g.caughtUp()
				g.stop()
				anew := 0
				for _, said := range g.said {
					if strings.Contains(said.now(), "computed again") {
						anew++
					}
				}
				if anew == 0 {
					t.Error("no worker says that it computes everything again")
				}
			}
		})
	}
}
