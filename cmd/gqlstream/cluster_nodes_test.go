//go:build unix && !race

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
	"gqlstream/internal/testfile"
)

const serverSaidMax = 100_000 // bytes of a server's log that are shown where a test has failed

const logName, estimatesName, quarantineName = "GQL", "GQL_ESTIMATES", "GQL_QUARANTINE"

// nodes are the servers of a cluster, each a process of its own, with links that can be cut.
type nodes struct {
	t     *testing.T
	list  [3]*node
	peers [3][3]*link // from one server to another
	nc    *nats.Conn  // of the test, which goes through the doors
	js    jetstream.JetStream
}

// node is one server.
type node struct {
	config  string // file
	address string
	link    *link // for the processes under test
	door    *link // for the test and the producer, on the side of the majority
	process *exec.Cmd
	ended   chan struct{}
	clock   string // file with the error of its clock in seconds
}

// clockVariable names a file with the error of a process's clock in seconds. It works in
// binaries that were built with the overlay of .ci/bent-clock.
const clockVariable = "GQLSTREAM_TEST_CLOCK"

// bend makes a clock wrong by some seconds from now on. The file is mapped by processes, so it is
// written in place.
func bend(t *testing.T, clock string, seconds int) {
	t.Helper()
	file, err := os.OpenFile(clock, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(seconds)), 0)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startNodes starts a cluster and waits until it keeps streams of three copies.
func startNodes(t *testing.T) *nodes {
	t.Helper()
	c, dir := &nodes{t: t}, t.TempDir()
	var ports [6]string
	for i := range ports { // all at once, so that no two are the same
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ports[i] = listener.Addr().String()
	}
	for i := range c.list {
		var routes []string
		for j := range c.list {
			if i != j {
				c.peers[i][j] = newLink(t, ports[3+j])
				routes = append(routes, strconv.Quote("nats://"+c.peers[i][j].address()))
			}
		}
		n := &node{
			config:  filepath.Join(dir, fmt.Sprintf("n%d.conf", i)),
			address: ports[i],
			clock:   filepath.Join(dir, fmt.Sprintf("n%d.clock", i)),
		}
		testfile.Write(t, n.config, fmt.Sprintf(`server_name: n%d
listen: %q
log_file: %q
jetstream { store_dir: %q, sync_interval: always }
cluster { name: faults, listen: %q, no_advertise: true, routes: [%s] }
`, i, ports[i], filepath.Join(dir, fmt.Sprintf("n%d.log", i)), filepath.Join(dir, fmt.Sprint(i)),
			ports[3+i], strings.Join(routes, ", ")))
		bend(t, n.clock, 0)
		c.list[i] = n
	}
	t.Cleanup(c.close)
	return c
}

// open starts the servers and connects.
func (c *nodes) open() {
	c.t.Helper()
	for _, n := range c.list {
		n.start(c.t)
		n.link, n.door = newLink(c.t, n.address), newLink(c.t, n.address)
	}
	var err error
	c.nc, err = nats.Connect(
		c.urls((*node).doorAddress), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(50*time.Millisecond), nats.PingInterval(time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.js, err = request.JetStream(c.nc, ""); err != nil {
		c.t.Fatal(err)
	}
	probe := jetstream.StreamConfig{Name: "PROBE", Replicas: len(c.list)}
	for deadline := time.Now().Add(crashStartMax); ; {
		if _, err = c.js.CreateStream(c.t.Context(), probe); err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
	}
}

func (n *node) doorAddress() string { return n.door.address() }

// isolate cuts a server off from the other servers, the test and the producer. The
// processes under test stay connected to it: they must find out by themselves that it has
// lost its majority.
func (c *nodes) isolate(i int) (undo func()) {
	cut := []*link{c.list[i].door}
	for j := range c.list {
		if i != j {
			cut = append(cut, c.peers[i][j], c.peers[j][i])
		}
	}
	for _, l := range cut {
		l.cut()
	}
	return func() {
		for _, l := range cut {
			l.mend()
		}
	}
}

// urls lists addresses of all servers.
func (c *nodes) urls(address func(*node) string) string {
	var list []string
	for _, n := range c.list {
		list = append(list, "nats://"+address(n))
	}
	return strings.Join(list, ",")
}

// leader returns the number of the server that leads a stream, once there is one.
func (c *nodes) leader(stream string) int {
	c.t.Helper()
	for deadline := time.Now().Add(crashStartMax); ; pause(c.t.Context(), 20*time.Millisecond) {
		s, err := c.js.Stream(c.t.Context(), stream)
		if err == nil && s.CachedInfo().Cluster != nil && s.CachedInfo().Cluster.Leader != "" {
			return int(s.CachedInfo().Cluster.Leader[1] - '0')
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("stream %s has no leader: %v", stream, err)
		}
	}
}

// leads reports whether the cluster and streams have leaders that answer.
func (c *nodes) leads(ctx context.Context, streams ...string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := c.js.AccountInfo(ctx) // which the leader of all answers
	return err == nil && !slices.ContainsFunc(streams, func(name string) bool {
		s, err := c.js.Stream(ctx, name)
		return err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == ""
	})
}

func (c *nodes) close() {
	if c.nc != nil {
		c.nc.Close()
	}
	for _, n := range c.list {
		if text, err := os.ReadFile(strings.TrimSuffix(n.config, ".conf") + ".log"); err == nil &&
			c.t.Failed() {
			c.t.Logf("%s said:\n%s", n.config, text[max(0, len(text)-serverSaidMax):])
		}
		if n.link != nil {
			n.link.close()
			n.door.close()
		}
		if n.process != nil {
			n.kill()
		}
	}
	for _, row := range c.peers {
		for _, l := range row {
			if l != nil {
				l.close()
			}
		}
	}
}

func (n *node) start(t *testing.T) {
	t.Helper()
	n.process = exec.Command(os.Args[0])
	n.process.Env = append(os.Environ(), serverVariable+"="+n.config, clockVariable+"="+n.clock)
	n.process.Stderr = os.Stderr
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	n.ended = make(chan struct{})
	go func(p *exec.Cmd, ended chan struct{}) { _ = p.Wait(); close(ended) }(n.process, n.ended)
}

// kill ends the server as a power cut would.
func (n *node) kill() {
	_ = n.process.Process.Kill()
	<-n.ended
	n.process = nil
}

// stop and resume make the server silent for a while: to clients and to the others.
func (n *node) stop()   { _ = n.process.Process.Signal(syscall.SIGSTOP) }
func (n *node) resume() { _ = n.process.Process.Signal(syscall.SIGCONT) }

// link carries connections to a server, and can be cut: then nothing comes through any
// more, and nobody is told, as when a firewall begins to drop.
type link struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     chan struct{} // closed while the link carries
	conns    map[net.Conn]bool
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, open: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(l.open)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(c)
		}
	}()
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

// cut makes the link silent until mend.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reopen()
	l.open = make(chan struct{})
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reopen()
}

// reopen lets held connections through.
func (l *link) reopen() {
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// carries reports whether somebody is connected.
func (l *link) carries() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns) > 0
}

func (l *link) carry(client net.Conn) {
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		client.Close()
		return
	}
	l.mu.Lock()
	l.conns[client] = true
	l.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			l.copy(way[0], way[1])
			client.Close()
			server.Close()
		})
	}
	both.Wait()
	l.mu.Lock()
	delete(l.conns, client)
	l.mu.Unlock()
}

// copy carries one way, and waits while the link is cut.
func (l *link) copy(from io.Reader, to io.Writer) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		open := l.open
		l.mu.Unlock()
		<-open
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (l *link) close() {
	l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Close()
	}
	l.reopen()
}

// recoveries are, by fault, the times until estimates were published again and until the
// cluster acknowledged again.
type recoveries map[string]*[2][]time.Duration

func (t recoveries) add(name string, published, cluster time.Duration) {
	if t[name] == nil {
		t[name] = &[2][]time.Duration{}
	}
	t[name][0], t[name][1] = append(t[name][0], published), append(t[name][1], cluster)
}

// String is the table of docs/reliability.md.
func (t recoveries) String() string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&s, "| %s | %d |", name, len(t[name][0]))
		for _, list := range t[name] {
			slices.Sort(list)
			fmt.Fprintf(
				&s, " %.1f / %.1f |", list[len(list)/2].Seconds(), list[len(list)*99/100].Seconds(),
			)
		}
		s.WriteByte('\n')
	}
	return s.String()
}
