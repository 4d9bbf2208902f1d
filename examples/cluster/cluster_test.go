package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
)

// freePorts returns ports that nobody listens on.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// startCluster starts the three servers of this folder on one machine: the files as they
// are, but for addresses and folders.
func startCluster(t *testing.T) (servers []*server.Server, ca string) {
	t.Helper()
	setPasswords(t)
	tls := t.TempDir()
	certificates(t, tls)
	ports := freePorts(t, 6)
	for i := range 3 {
		dir := t.TempDir()
		here := strings.NewReplacer(
			"/etc/nats/tls", tls, "/var/lib/nats", dir, `http: "127.0.0.1:8222"`, "", "port: 4222",
			fmt.Sprintf("listen: \"127.0.0.1:%d\"", ports[i]), "port: 6222",
			fmt.Sprintf("listen: \"127.0.0.1:%d\"", ports[3+i]), "nats-1:6222",
			fmt.Sprint("127.0.0.1:", ports[3]), "nats-2:6222", fmt.Sprint("127.0.0.1:", ports[4]),
			"nats-3:6222", fmt.Sprint("127.0.0.1:", ports[5]),
		)
		testfile.Write(t, filepath.Join(dir, "common.conf"), here.Replace(text(t, "common.conf")))
		testfile.Write(t, filepath.Join(dir, "permissions.conf"), text(t, "permissions.conf"))
		name := fmt.Sprintf("nats-%d.conf", i+1)
		servers = append(
			servers,
			start(t, testfile.Write(t, filepath.Join(dir, name), text(t, name))),
		)
	}
	for i, s := range servers {
		if want := fmt.Sprintf("nats-%d", i+1); s.Name() != want || s.ClusterName() != "gqlstream" {
			t.Errorf(
				"server %s of cluster %s, want %s of gqlstream", s.Name(), s.ClusterName(), want,
			)
		}
	}
	await(t, "a leader of JetStream and all servers", func() bool {
		for _, s := range servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3 {
				return true
			}
		}
		return false
	})
	return servers, filepath.Join(tls, "ca.pem")
}

// A group of two workers on the three servers by TLS must keep its streams on all of them and
// publish estimates, and go on when a worker is dead and the server gone that leads the output log.
func TestRunOnThreeServers(t *testing.T) {
	servers, ca := startCluster(t)
	var urls []string
	for _, s := range servers {
		urls = append(urls, "tls://worker:worker@"+s.Addr().String())
	}
	dir := t.TempDir()
	config := text(t, "gqlstream.yaml")
	at := strings.Index(config, "http:\n")
	config = strings.NewReplacer("/var/lib/gqlstream-cluster", dir).
		Replace(config[:at]) +
		"http: {listen: '127.0.0.1:0'}\n"
	for i, url := range urls {
		config = strings.ReplaceAll(
			config,
			fmt.Sprintf("tls://worker:WORKER_PASSWORD@nats-%d:4222", i+1),
			url,
		)
		config = strings.ReplaceAll(
			config,
			fmt.Sprintf("tls://answers:ANSWERS_PASSWORD@nats-%d:4222", i+1),
			strings.ReplaceAll(url, "worker:worker@", "answers:answers@"),
		)
	}
	config = strings.Replace(config, "/etc/gqlstream/secrets/ca.pem", ca, 1)
	path := testfile.Write(t, filepath.Join(dir, "gqlstream.yaml"), config)
	stays := startRun(t, path, "--group", "cluster", "--worker", "worker-1", "--state", t.TempDir())
	dies := startProgram(
		t, "run", "--config", path, "--group", "cluster", "--worker", "worker-2", "--state",
		t.TempDir(),
	)
	dies.page(t)
	addresses := strings.ReplaceAll(strings.Join(urls, ","), "worker:worker@", "")
	connectTo := func(role string) jetstream.JetStream {
		js, err := jetstream.New(
			dial(
				t, addresses, role, make(chan error, 16), nats.RootCAs(ca),
				nats.ReconnectWait(50*time.Millisecond),
			),
		)
		if err != nil {
			t.Fatal(err)
		}
		return js
	}
	operator, producer := connectTo("operator"), connectTo("producer")
	publish(t, producer, 1)
	for _, name := range []string{
		"GQL", "GQL_QUARANTINE", "GQL_ESTIMATES", "GQL_ALERTS",
		"KV_gql_estimates",
	} {
		await(t, "current copies of "+name, func() bool {
			stream, err := operator.Stream(t.Context(), name)
			if err != nil {
				return false
			}
			info := stream.CachedInfo()
			return len(info.Cluster.Replicas) == 2 && info.Cluster.Replicas[0].Current &&
				info.Cluster.Replicas[1].Current
		})
	}
	oneExports(t, stays, dies.page(t))
	if err := dies.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = dies.Wait()
	stopLeader(t, operator, "GQL_ESTIMATES", servers)
	publish(t, producer, 2)
	await(t, "the estimate after a server is gone", func() bool {
		bucket, err := operator.KeyValue(t.Context(), "gql_estimates")
		if err != nil {
			return false
		}
		entry, err := bucket.Get(t.Context(), "everyone.auto")
		return err == nil && strings.Contains(string(entry.Value()), `"members":24`)
	})
}

// oneExports waits until one of two workers has the metrics of communities, and both know of each
// other and that every shard is estimated.
func oneExports(t *testing.T, pages ...string) {
	t.Helper()
	await(t, "one worker that exports communities", func() bool {
		exporting := 0
		for _, page := range pages {
			reply, err := http.Get(page + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(reply.Body)
			if reply.Body.Close(); err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{
				"gqlstream_group_workers 2",
				"gqlstream_group_shards_unserved 0",
			} {
				if !strings.Contains(string(body), "\n"+line+"\n") {
					return false
				}
			}
			if strings.Contains(string(body), `gqlstream_estimate_members{community="everyone"`) {
				exporting++
			}
		}
		return exporting == 1
	})
}

// publish publishes the n-th dozen of vertices with predictions; the store may be away for
// a moment while a leader is elected.
func publish(t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	for v := range 12 {
		payload := fmt.Sprintf(`{"vertex": %d, "probabilities": [0.7, 0.3]}`, 100*n+v)
		await(t, "the log to take an event", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := js.Publish(ctx, "gql.prediction", []byte(payload))
			return err == nil
		})
	}
}

// stopLeader stops the server that leads a stream.
func stopLeader(t *testing.T, js jetstream.JetStream, name string, servers []*server.Server) {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		if s.Name() == stream.CachedInfo().Cluster.Leader {
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
}

// Every file that a configuration names must be explained in the README, and none hold a
// password.
func TestFilesHoldNoSecretsAndAreExplained(t *testing.T) {
	readme := text(t, "README.md")
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || path == "README.md" {
			return err
		}
		if !strings.Contains(readme, filepath.ToSlash(path)) {
			t.Errorf("README.md says nothing of %s", path)
		}
		for line := range strings.Lines(text(t, path)) {
			if _, secret, found := strings.Cut(line, "password: "); found &&
				!strings.HasPrefix(secret, "$") {
				t.Errorf("%s: %s", path, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
