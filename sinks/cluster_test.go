package sinks

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cluster is three servers in this process.
type cluster struct {
	t       *testing.T
	options []*server.Options
	servers []*server.Server
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: make([]*server.Server, 3)}
	var routes []*url.URL
	var ports [6]int
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = listener.Addr().(*net.TCPAddr).Port
		defer listener.Close()
		if i < 3 {
			routes = append(
				routes,
				&url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[i])},
			)
		}
	}
	dir := t.TempDir()
	for i := range 3 {
		c.options = append(c.options, &server.Options{
			ServerName: fmt.Sprint(
				"n",
				i,
			), Host: "127.0.0.1", Port: ports[3+i], JetStream: true, SyncAlways: true, NoSigs: true,
			StoreDir: filepath.Join(dir, fmt.Sprint(i)), Routes: routes,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[i]},
		})
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.Shutdown()
			s.WaitForShutdown()
		}
	})
	return c
}

func (c *cluster) start(i int) {
	c.t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		c.t.Fatal(err)
	}
	s.Start()
	c.servers[i] = s
}

// connect starts the servers and waits until they keep streams.
func (c *cluster) connect() *logOut {
	c.t.Helper()
	addresses := ""
	for i, o := range c.options {
		c.start(i)
		addresses += fmt.Sprintf("nats://127.0.0.1:%d,", o.Port)
	}
	nc, err := nats.Connect(
		addresses, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.RetryOnFailedConnect(true),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	l := &logOut{t: c.t, nc: nc, js: js}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "PROBE", Replicas: 3})
		cancel()
		if err == nil {
			return l
		}
		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
	}
}

// restartLeader ends the server that leads a stream and starts it again.
func (c *cluster) restartLeader(l *logOut, name string) {
	c.t.Helper()
	stream, err := l.js.Stream(c.t.Context(), name)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, o := range c.options {
		if o.ServerName == stream.CachedInfo().Cluster.Leader {
			c.servers[i].Shutdown()
			c.servers[i].WaitForShutdown()
			c.start(i)
		}
	}
}
