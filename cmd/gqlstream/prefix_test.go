package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Two pipelines with different prefixes on one server, with logs of their own, must each
// publish what a replay of its log gives, and nothing of the other's.
func TestTwoPipelinesShareAServer(t *testing.T) {
	server, nc := connectedServer(t)
	files := t.TempDir()
	var published []string
	for i, prefix := range []string{"", "test"} {
		conf := filepath.Join(files, "gqlstream"+prefix+".yaml")
		state, output := filepath.Join(files, "state"+prefix), filepath.Join(files, "out"+prefix)
		writeConfig(
			t,
			conf,
			crashConfig+"nats: {url: \""+server.URL()+"\", prefix: \""+prefix+"\"}\n",
		)
		settings, err := config.Load(conf)
		if err != nil {
			t.Fatal(err)
		}
		in, _, err := settings.Names()
		if err != nil {
			t.Fatal(err)
		}
		mustRun(
			t, "run", "--config", conf, "--state", state, "--exit-when-drained",
		) // makes the streams
		publisher, err := ingest.NewPublisher(nc, ingest.PublisherConfig{Stream: in.Log})
		if err != nil {
			t.Fatal(err)
		}
		events := &crashEvents{rand: rand.New(rand.NewPCG(uint64(i), 77))}
		for range 60 + 20*i {
			if err := publisher.Publish(t.Context(), events.next()); err != nil {
				t.Fatal(err)
			}
		}
		if err := publisher.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		publisher.Close()
		mustRun(
			t, "run", "--config", conf, "--state", state, "--output", output, "--exit-when-drained",
		)
		replayed, _ := mustRun(t, "replay", "--config", conf)
		text, err := os.ReadFile(output)
		if err != nil || len(text) == 0 {
			t.Fatalf("prefix %q: %d bytes, %v", prefix, len(text), err)
		}
		sameLines(
			t, "replay with prefix "+prefix, replayed,
			strings.Split(strings.TrimSpace(string(text)), "\n"),
		)
		list, _ := mustRun(t, "quarantine", "list", "--nats", server.URL(), "--prefix", prefix)
		if !strings.Contains(list, "edge") {
			t.Errorf("prefix %q: the quarantine has\n%s", prefix, list)
		}
		published = append(published, string(text))
	}
	if published[0] == published[1] {
		t.Error("both pipelines have published the same")
	}
	if _, err := sinks.NewNames("a.b"); err == nil {
		t.Error("a prefix with a dot is taken")
	}
}

// connectedServer starts a NATS server for the time of a test, and connects to it.
func connectedServer(t *testing.T) (*broker.Embedded, *nats.Conn) {
	t.Helper()
	server, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return server, nc
}

// A second question on the same edges has a log of its own that takes the edges of the
// first by a source, as docs/operations.md says, and answers as if they were its own.
func TestSecondQuestionSourcesTheEdges(t *testing.T) {
	server, nc := connectedServer(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```json second.json\n")
	text, _, found := strings.Cut(text, "```")
	var second jetstream.StreamConfig
	if err := json.Unmarshal([]byte(text), &second); err != nil || !found {
		t.Fatalf("the recipe has no stream: %v", err)
	}
	dir := t.TempDir()
	data := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeConfig(t, path, text)
		return path
	}
	edges, members := "src,dst\n", "community,vertex\n"
	for v := range 20 {
		edges += fmt.Sprintf("v%d,v%d\nv%d,v%d\n", v, (v+1)%20, v, (v+3)%20)
		members += fmt.Sprintf("all,v%d\n", v)
	}
	mustRun(
		t, "publish", "--nats", server.URL(), "--classes", "left,right", "--edges",
		data("e.csv", edges), "--labels", data("l.csv", "vertex,label\nv1,left\nv2,right\n"),
	)
	if _, err := js.CreateStream(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		stream, err := js.Stream(t.Context(), second.Name)
		if err == nil && stream.CachedInfo().State.Msgs > 0 &&
			stream.CachedInfo().Sources[0].Lag == 0 {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("the edges do not come: %v", err)
		}
	}
	mustRun(
		t, "publish", "--nats", server.URL(), "--prefix", "language", "--classes", "de,en,fr",
		"--members", data("m.csv", members), "--labels",
		data("own.csv", "vertex,label\nv0,de\nv1,en\nv2,fr\nv5,de\nv9,en\nv12,fr\n"),
	)
	conf := data(
		"language.yaml",
		"classes: [de, en, fr]\nclassifier: diffusion\nhttp: {listen: \"off\"}\nnats: {url: \""+
			server.URL()+"\", prefix: language}\n",
	)
	output := filepath.Join(dir, "out")
	mustRun(
		t, "run", "--config", conf, "--state", filepath.Join(dir, "state"), "--output", output,
		"--exit-when-drained",
	)
	written, err := os.ReadFile(output)
	if err != nil || !strings.Contains(string(written), `"community":"all"`) ||
		strings.Contains(string(written), "no-label-reachable:") {
		t.Errorf("%v\n%s", err, written)
	}
	if list, _ := mustRun(t, "quarantine", "list", "--nats", server.URL(), "--prefix",
		"language"); strings.Contains(list, "edge") ||
		strings.Contains(list, "label") {
		t.Errorf("refused:\n%s", list)
	}
}
