package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Two pipelines with different prefixes on one server have logs of their own. Each must
// publish the records of a replay of its log, and none of the other.
func TestTwoPipelinesShareAServer(t *testing.T) {
	server, nc := connectedServer(t)
	files := t.TempDir()
	var published []string
	for i, prefix := range []string{"", "test"} {
		conf := filepath.Join(files, "gqlstream"+prefix+".yaml")
		state, output := filepath.Join(files, "state"+prefix), filepath.Join(files, "out"+prefix)
		testfile.Write(
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

// Another question about the same graph has a log that copies edges, vertices and members of the
// first one, as docs/operations.md says, and answers as if they were its own. Labels stay
// apart. An erasure reaches both.
func TestAnotherQuestionCopiesTheGraph(t *testing.T) {
	server, nc := connectedServer(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data := func(name, text string) string {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, text)
		return path
	}
	edges, members := "src,dst\n", "community,vertex\n"
	for v := range 20 {
		edges += fmt.Sprintf("v%d,v%d\nv%d,v%d\n", v, (v+1)%20, v, (v+3)%20)
		members += fmt.Sprintf("all,v%d\n", v)
	}
	conf := data(
		"language.yaml",
		"classes: [de, en, fr]\nclassifier: diffusion\nhttp: {listen: \"off\"}\nnats: {url: \""+
			server.URL()+"\", prefix: language}\n",
	)
	ask := []string{
		"run", "--config", conf, "--graph-of", "gql", "--state", filepath.Join(dir, "state"),
		"--output", filepath.Join(dir, "out"), "--exit-when-drained",
	}
	if code, _, said := runCommand(ask...); code == 0 ||
		!strings.Contains(said, "there is no log GQL") {
		t.Errorf("without the first log: code %d, %s", code, said)
	}
	mustRun(
		t, "publish", "--nats", server.URL(), "--classes", "left,right", "--edges",
		data("e.csv", edges), "--labels", data("l.csv", "vertex,label\nv1,left\nv2,right\n"),
		"--members", data("m.csv", members),
	)
	mustRun(t, ask...) // makes the streams
	awaitCopied(t, js, "LANGUAGE")
	mustRun(
		t, "publish", "--nats", server.URL(), "--prefix", "language", "--classes", "de,en,fr",
		"--labels",
		data("own.csv", "vertex,label\nv0,de\nv1,en\nv2,fr\nv5,de\nv9,en\nv12,fr\n"),
	)
	mustRun(t, ask...)
	written, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil || !strings.Contains(string(written), `"community":"all"`) ||
		strings.Contains(string(written), "no-label-reachable:") {
		t.Errorf("%v\n%s", err, written)
	}
	if list, _ := mustRun(t, "quarantine", "list", "--nats", server.URL(), "--prefix",
		"language"); strings.Contains(list, "edge") || strings.Contains(list, "label") {
		t.Errorf("refused:\n%s", list)
	}
	message := []byte(`{"vertex": "v3", "erase": true}`)
	if _, err := js.Publish(t.Context(), "gql.vertex", message); err != nil {
		t.Fatal(err)
	}
	awaitCopied(t, js, "LANGUAGE")
	stream, err := js.Stream(t.Context(), "LANGUAGE")
	if err != nil {
		t.Fatal(err)
	}
	if last, err := stream.GetLastMsgForSubject(t.Context(), "language.vertex"); err != nil ||
		string(last.Data) != string(message) {
		t.Errorf("the erasure is not copied: %v", err)
	}
	code, _, said := runCommand("run", "--config", conf, "--graph-of", "other", "--state",
		filepath.Join(dir, "state"), "--exit-when-drained")
	if code == 0 || !strings.Contains(said, "does not copy the graph of OTHER") {
		t.Errorf("the graph of another log: code %d, %s", code, said)
	}
}

// awaitCopied waits until a log has all events of the graph that it copies.
func awaitCopied(t *testing.T, js jetstream.JetStream, log string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		stream, err := js.Stream(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		info := stream.CachedInfo()
		source := info.Sources[0]
		graph, err := js.Stream(t.Context(), source.Name)
		if err != nil {
			t.Fatal(err)
		}
		subjects, err := graph.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(0)
		for _, kind := range []string{"edge", "vertex", "member"} {
			want += subjects.State.Subjects["gql."+kind]
		}
		copied, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		if err != nil {
			t.Fatal(err)
		}
		have := uint64(0)
		for _, kind := range []string{"edge", "vertex", "member"} {
			have += copied.State.Subjects[strings.ToLower(log)+"."+kind]
		}
		if have == want {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("%d of %d messages of the graph are copied", have, want)
		}
	}
}
