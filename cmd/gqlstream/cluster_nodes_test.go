//go:build unix && !race

package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const logName, estimatesName = "GQL", "GQL_ESTIMATES"

// nodes are the servers of a cluster, each a process of its own, and a link to each that
// can be cut.
type nodes struct {
	t    *testing.T
	list [3]*node
	nc   *nats.Conn // of the test, which goes past the links
	js   jetstream.JetStream
}

// node is one server.
type node struct {
	config  string // file
	address string
	link    *link
	process *exec.Cmd
	ended   chan struct{}
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
		n := &node{config: filepath.Join(dir, fmt.Sprintf("n%d.conf", i)), address: ports[i]}
		writeConfig(t, n.config, fmt.Sprintf(`server_name: n%d
listen: %q
log_file: %q
jetstream { store_dir: %q, sync_interval: always }
cluster { name: faults, listen: %q, no_advertise: true, routes: ["nats://%s", "nats://%s", "nats://%s"] }
`, i, ports[i], filepath.Join(dir, fmt.Sprintf("n%d.log", i)), filepath.Join(dir, fmt.Sprint(i)), ports[3+i], ports[3], ports[4], ports[5]))
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
		n.link = newLink(c.t, n.address)
	}
	var err error
	c.nc, err = nats.Connect(c.urls(func(n *node) string { return n.address }), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(50*time.Millisecond), nats.PingInterval(time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
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

func (c *nodes) close() {
	if c.nc != nil {
		c.nc.Close()
	}
	for _, n := range c.list {
		if n.link != nil {
			n.link.close()
		}
		if n.process != nil {
			n.kill()
		}
	}
}

func (n *node) start(t *testing.T) {
	t.Helper()
	n.process = exec.Command(os.Args[0])
	n.process.Env = append(os.Environ(), serverVariable+"="+n.config)
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
	l.open = make(chan struct{})
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
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
	select {
	case <-l.open:
	default:
		close(l.open)
	}
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
			fmt.Fprintf(&s, " %.1f / %.1f |", list[len(list)/2].Seconds(), list[len(list)*99/100].Seconds())
		}
		s.WriteByte('\n')
	}
	return s.String()
}
