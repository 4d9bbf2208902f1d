package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/lab/campaign"
)

// lazyVariable names the program of LazyFS, a file system that forgets what was not synced:
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
		t, filepath.Join(root, "disk"), filepath.Join(root, "faults"), filepath.Join(root, "completed"),
	}
	stored, config := filepath.Join(root, "stored"), filepath.Join(root, "lazyfs.toml")
	for _, dir := range []string{l.path, stored} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeConfig(t, config, fmt.Sprintf("[faults]\nfifo_path=%q\nfifo_path_completed=%q\n[cache]\n"+
		"apply_eviction=false\n[cache.simple]\ncustom_size=\"1gb\"\nblocks_per_page=1\n"+
		"[filesystem]\nlog_all_operations=false\nlogfile=\"\"\n", l.fifo, l.completed))
	mount := exec.Command(program, l.path, "--config-path", config, "-o", "modules=subdir",
		"-o", "subdir="+stored, "-f")
	said := newSpoken()
	mount.Stdout, mount.Stderr = said, said
	if err := mount.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, err := exec.Command("fusermount3", "-u", "-z", l.path).CombinedOutput(); err != nil {
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

// cut drops what was not synced.
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

// A power cut under a live run must lose no acknowledged event, and the next start must be ready and
// publish what a replay gives. GQLSTREAM_POWERCUTS sets how many there are (make faults: 100).
func TestPowerCutsLoseNothing(t *testing.T) {
	program := os.Getenv(lazyVariable)
	if program == "" {
		t.Skipf("%s names no LazyFS; make faults explains how to build it", lazyVariable)
	}
	disk := mountLazyFS(t, program)
	d := newDrill(t, false)
	d.dir = filepath.Join(disk.path, "state")
	stored := map[uint64][]byte{}
	cuts := campaign.Size(t, "GQLSTREAM_POWERCUTS", 3)
	for i := range cuts {
		address := freeAddress(t)
		run := exec.Command(os.Args[0], d.command("run", "--listen", address)...)
		run.Env = append(os.Environ(), mainVariable+"=1")
		said := newSpoken()
		run.Stderr = said
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		d.publishUntilCut("nats://"+address, stored, said)
		if err := run.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = run.Wait()
		disk.cut()
		withBroker(t, d.dir, func(js jetstream.JetStream) {
			s, err := js.Stream(t.Context(), broker.DefaultStreamNames().Log)
			if err != nil {
				t.Fatalf("after cut %d: %v", i, err)
			}
			for sequence, data := range stored {
				m, err := s.GetMsg(t.Context(), sequence)
				if err != nil || !bytes.Equal(m.Data, data) {
					t.Fatalf("cut %d: the acknowledged message %d is gone: %v", i, sequence, err)
				}
			}
		})
		mustRun(t, d.command("scrub")...)
	}
	d.goesOn(false)
	t.Logf("%d cuts, %d acknowledged messages, none lost", cuts, len(stored))
}

// publishUntilCut publishes for a random time and notes what was acknowledged.
func (d *drill) publishUntilCut(url string, stored map[uint64][]byte, said *spoken) {
	d.t.Helper()
	deadline := time.Now().Add(crashStartMax)
	nc, err := broker.Connect(broker.ConnectConfig{URL: url})
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		nc, err = broker.Connect(broker.ConnectConfig{URL: url})
	}
	if err != nil {
		d.t.Fatalf("%v\n%s", err, said.now())
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		d.t.Fatal(err)
	}
	for range 3 + d.rand.IntN(40) {
		data := fmt.Appendf(nil, `{"src":%d,"dst":%d}`, d.rand.IntN(50), 50+d.rand.IntN(50))
		ack, err := js.Publish(d.t.Context(), "gql.edge", data)
		if err != nil {
			d.t.Fatalf("%v\n%s", err, said.now())
		}
		stored[ack.Sequence] = data
		if d.rand.IntN(5) == 0 {
			time.Sleep(time.Duration(d.rand.IntN(100)) * time.Millisecond)
		}
	}
}
