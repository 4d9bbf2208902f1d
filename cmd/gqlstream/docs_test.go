package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/testfile"
)

// The commands of the README and of the first pages must work as they stand there, pasted
// into a shell line by line, in the folder that they say, on the files that they name.
func TestFirstPagesWork(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		page string
		min  int // commands on it
	}{{"README.md", 6}, {"docs/quickstart.md", 4}} {
		t.Run(c.page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, c.page))
			if err != nil {
				t.Fatal(err)
			}
			if ran := pasted(t, root, string(text)); ran < c.min {
				t.Errorf("only %d commands on %s, want %d", ran, c.page, c.min)
			}
		})
	}
}

// pasted runs the commands of a page next to a live run, and returns their number.
func pasted(t *testing.T, root, text string) (ran int) {
	t.Helper()
	server, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	dir, state := t.TempDir(), t.TempDir()
	config := filepath.Join(dir, "gqlstream.yaml")
	testfile.Write(
		t,
		config,
		"{classes: [left, right], state: "+state+", nats: {url: '"+server.URL()+
			"'}, http: {listen: '127.0.0.1:0'}}",
	)
	p := startPipeline(t, config)
	here := strings.NewReplacer(
		"nats://127.0.0.1:4222", server.URL(), "127.0.0.1:4222", "127.0.0.1:0", "./state", state,
		"estimates.ndjson", filepath.Join(dir, "e.ndjson"), "log.ndjson.zst",
		filepath.Join(dir, "log.ndjson.zst"), "truth.csv", filepath.Join(dir, "truth.csv"),
		"--vertices 20000 --duration 5m", "--vertices 500 --duration 5s",
	)
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, match := range regexp.MustCompile(`(?m)^((?:\.\./\.\./)?)bin/gqlstream (.*)$`).
		FindAllStringSubmatch(text, -1) {
		folder := root
		if match[1] != "" {
			folder = filepath.Join(root, "examples", "data")
		}
		t.Chdir(folder)
		line, _, _ := strings.Cut(strings.TrimSuffix(match[2], " &"), " > ")
		args := strings.Fields(here.Replace(line))
		switch args[0] {
		case "run":
			args = append(args, "--exit-when-drained", "--state", t.TempDir())
		case "watch":
			args = append(args, "--url", p.Page.URL())
		}
		mustRun(t, args...)
		ran++
	}
	return ran
}

// Every event that the quickstart shows must be taken as it stands there.
func TestQuickstartEventsAreTaken(t *testing.T) {
	decoder, err := wire.NewDecoder(event.ClassSet{Names: []string{"left", "right"}})
	if err != nil {
		t.Fatal(err)
	}
	text := fromRoot(t, "docs", "quickstart.md")
	n := 0
	for _, call := range regexp.MustCompile(`publish\("(gql\.\w+)", json\.dumps\((\{.*\})\)`).
		FindAllStringSubmatch(text, -1) {
		n++
		takes(t, decoder, call[1], call[2])
	}
	if n < 2 {
		t.Errorf("only %d events in the quickstart", n)
	}
}

// takes fails the test unless a message with this payload decodes to events and none is
// refused.
func takes(t *testing.T, decoder *wire.Decoder, subject, payload string) {
	t.Helper()
	kind, ok := event.ParseKind(strings.TrimPrefix(subject, "gql."))
	if !ok {
		t.Errorf("no kind has the subject %s", subject)
		return
	}
	var b event.Batch
	err := decoder.Decode(wire.Message{Kind: kind, Payload: []byte(payload), Position: 1}, &b)
	if err != nil || len(b.Refused) > 0 || b.Events() != 1 {
		t.Errorf("%s %s: %v, refused %v", subject, payload, err, b.Refused)
	}
}
