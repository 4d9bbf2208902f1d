package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
)

// lazyVariable names the program of LazyFS, a file system that forgets unsynced data:
// https://github.com/dsrhaslab/lazyfs.
const lazyVariable = "GQLSTREAM_LAZYFS"

// lazyDisk is a mounted LazyFS.
type lazyDisk struct {
	t         *testing.T
	path      string
	fifo      string
	completed string
}

func mountLazyFS(t *testing.T, program string) *lazyDisk {
	t.Helper()
	root := t.TempDir()
	l := &lazyDisk{
		t, filepath.Join(root, "disk"), filepath.Join(root, "faults"),
		filepath.Join(root, "completed"),
	}
	stored, config := filepath.Join(root, "stored"), filepath.Join(root, "lazyfs.toml")
	for _, dir := range []string{l.path, stored} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	testfile.Write(
		t,
		config,
		fmt.Sprintf("[faults]\nfifo_path=%q\nfifo_path_completed=%q\n[cache]\n"+
			"apply_eviction=false\n[cache.simple]\ncustom_size=\"1gb\"\nblocks_per_page=1\n"+
			"[filesystem]\nlog_all_operations=false\nlogfile=\"\"\n", l.fifo, l.completed),
	)
	mount := exec.Command(program, l.path, "--config-path", config, "-o", "modules=subdir",
		"-o", "subdir="+stored, "-f")
	said := newSpoken()
	mount.Stdout, mount.Stderr = said, said
	if err := mount.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, err := exec.Command("fusermount3", "-u", "-z",
			l.path).CombinedOutput(); err != nil {
			t.Errorf("fusermount3: %v: %s", err, text)
		}
		_ = mount.Wait()
	})
	for deadline := time.Now().Add(crashStartMax); ; time.Sleep(20 * time.Millisecond) {
		_, err := os.Stat(l.fifo)
		mounts, _ := os.ReadFile("/proc/mounts")
		if err == nil && strings.Contains(string(mounts), l.path) {
			return l
		}
		if time.Now().After(deadline) {
			t.Fatalf("LazyFS is not mounted: %s", said.now())
		}
	}
}

// cut drops unsynced data.
func (l *lazyDisk) cut() {
	l.t.Helper()
	done, err := os.OpenFile(l.completed, os.O_RDWR, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer done.Close()
	ask, err := os.OpenFile(l.fifo, os.O_WRONLY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := ask.WriteString("lazyfs::clear-cache\n"); err != nil {
		l.t.Fatal(err)
	}
	ask.Close()
	line, err := bufio.NewReader(done).ReadString('\n')
	if err != nil || !strings.Contains(line, "clear-cache") {
		l.t.Fatalf("LazyFS answers %q: %v", line, err)
	}
}

// A power cut under a live run and its broker must lose no acknowledged event. The records after
// the next start must be those of a replay. GQLSTREAM_POWERCUTS sets the number of power cuts (make
// faults: 100). LazyFS does not report its free space, so the configuration of the broker sets
// max_file_store. The broker syncs every message.
func TestPowerCutsLoseNothing(t *testing.T) {
	program := os.Getenv(lazyVariable)
	if program == "" {
		t.Skipf("%s names no LazyFS; .ci/lazyfs builds it, for make faults", lazyVariable)
	}
	disk := mountLazyFS(t, program)
	d := &drill{history: newHistory(t, rand.NewPCG(campaign.Seed(t, 7), 3), crashConfig)}
	d.dir = filepath.Join(disk.path, "state")
	address := freeAddress(t)
	d.url = "nats://" + address
	settings := filepath.Join(t.TempDir(), "nats.conf")
	testfile.Write(
		t,
		settings,
		fmt.Sprintf("listen: %q\njetstream {store_dir: %q, max_file_store: "+
			"900MB, "+
			"sync_interval: always}\n", address, filepath.Join(disk.path, "broker")),
	)
	stored := map[uint64][]byte{}
	cuts := campaign.Size(t, "GQLSTREAM_POWERCUTS", 3)
	for i := range cuts {
		server := d.serve(serverVariable+"="+settings, os.Args[0])
		run := d.serve(mainVariable+"=1", append([]string{os.Args[0]}, d.command("run")...)...)
		d.publishUntilCut(stored)
		for _, one := range []*exec.Cmd{server, run} {
			if err := one.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = one.Wait()
		}
		disk.cut()
		server = d.serve(serverVariable+"="+settings, os.Args[0])
		d.holds(i, stored)
		mustRun(t, d.command("run", "--exit-when-drained")...)
		mustRun(t, d.command("scrub")...)
		if i == cuts-1 {
			d.goesOn(false)
		}
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}
	t.Logf("%d cuts, %d acknowledged messages, none lost", cuts, len(stored))
}

// serve starts a process, which ends with the test at the latest.
func (d *drill) serve(variable string, line ...string) *exec.Cmd {
	d.t.Helper()
	process := exec.Command(line[0], line[1:]...)
	process.Env = append(os.Environ(), variable)
	if err := process.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	return process
}

// broker connects to the server, once that is there.
func (d *drill) broker() jetstream.JetStream {
	d.t.Helper()
	for deadline := time.Now().Add(crashStartMax); ; time.Sleep(50 * time.Millisecond) {
		nc, err := broker.Connect(broker.ConnectConfig{URL: d.url})
		if err == nil {
			d.t.Cleanup(nc.Close)
			js, err := jetstream.New(nc)
			if err != nil {
				d.t.Fatal(err)
			}
			return js
		}
		if time.Now().After(deadline) {
			d.t.Fatal(err)
		}
	}
}

// holds checks that the log has every acknowledged message in its place.
func (d *drill) holds(cut int, stored map[uint64][]byte) {
	d.t.Helper()
	s, err := d.broker().Stream(d.t.Context(), broker.DefaultStreamNames().Log)
	if err != nil {
		d.t.Fatalf("after cut %d: %v", cut, err)
	}
	for sequence, data := range stored {
		m, err := s.GetMsg(d.t.Context(), sequence)
		if err != nil || !bytes.Equal(m.Data, data) {
			d.t.Fatalf("cut %d: the acknowledged message %d is gone: %v", cut, sequence, err)
		}
	}
}

// publishUntilCut publishes for a random time, once the run has made the log, and notes the
// acknowledged messages.
func (d *drill) publishUntilCut(stored map[uint64][]byte) {
	d.t.Helper()
	js := d.broker()
	awaitLog(d.t, js)
	for range 3 + d.rand.IntN(40) {
		data := fmt.Appendf(nil, `{"src":%d,"dst":%d}`, d.rand.IntN(50), 50+d.rand.IntN(50))
		ack, err := js.Publish(d.t.Context(), "gql.edge", data)
		if err != nil {
			d.t.Fatal(err)
		}
		stored[ack.Sequence] = data
		if d.rand.IntN(5) == 0 {
			time.Sleep(time.Duration(d.rand.IntN(100)) * time.Millisecond)
		}
	}
}

// awaitLog waits until a run has made the log.
func awaitLog(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	for deadline := time.Now().Add(crashStartMax); ; time.Sleep(50 * time.Millisecond) {
		_, err := js.Stream(t.Context(), broker.DefaultStreamNames().Log)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
