package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
)

// drained is a pipeline that runs over its log and ends.
type drained struct {
	t                     *testing.T
	config, state, output string
}

func newDrained(t *testing.T) *drained {
	dir := t.TempDir()
	r := &drained{
		t: t, config: filepath.Join(dir, "gqlstream.yaml"),
		state: filepath.Join(dir, "state"), output: filepath.Join(dir, "out"),
	}
	testfile.Write(t, r.config, crashConfig)
	return r
}

func (r *drained) run() {
	r.t.Helper()
	mustRun(r.t, "run", "--config", r.config, "--state", r.state, "--output", r.output,
		"--exit-when-drained")
}

// A note must be in the output, in a replay and in the history, once each, however often
// the run starts.
func TestNotesReachPeopleAndReplays(t *testing.T) {
	r := newDrained(t)
	r.run()
	said, _ := mustRun(t, "publish", "--state", r.state, "--note", "debate <tonight>")
	if !strings.Contains(said, "published the note at position") {
		t.Errorf("publish says %q", said)
	}
	r.run()
	r.run()
	text, err := os.ReadFile(r.output)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"note":"debate <tonight>","position":`
	const kept = `{"note":"debate \u003ctonight\u003e","position":` // the same text in JSON
	if strings.Count(string(text), want) != 1 {
		t.Errorf("the output is\n%s", text)
	}
	replayed, _ := mustRun(t, "replay", "--config", r.config, "--state", r.state)
	if strings.Count(replayed, want) != 1 {
		t.Errorf("a replay prints\n%s", replayed)
	}
	withBroker(t, r.state, func(js jetstream.JetStream) {
		stream, err := js.Stream(t.Context(), "GQL_HISTORY")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := stream.GetLastMsgForSubject(t.Context(), "gqlest.history.note"); err != nil ||
			!strings.HasPrefix(string(m.Data), kept) {
			t.Errorf("the history has %v, %v", m, err)
		}
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("gqlest.history.note"))
		if err != nil || info.State.Subjects["gqlest.history.note"] != 1 {
			t.Errorf("the history has %v, %v", info, err)
		}
	})
	for _, wrong := range [][]string{{"--note", strings.Repeat("x", 300)}, {}} {
		if code, _, errors := runCommand(append([]string{"publish", "--state", r.state},
			wrong...)...); code != 2 {
			t.Errorf("%v: code %d: %s", wrong, code, errors)
		}
	}
}

// A clock event must be published by the command, applied by a run, and replayed to the same bytes.
func TestClockEventsAreReplayed(t *testing.T) {
	r := newDrained(t)
	r.run()
	data := filepath.Join("..", "..", "examples", "data")
	mustRun(
		t, "publish", "--state", r.state, "--classes", "left,right",
		"--edges", filepath.Join(data, "edges.csv"),
		"--labels", filepath.Join(data, "labels.csv"),
		"--predictions", filepath.Join(data, "predictions.csv"),
	)
	said, _ := mustRun(t, "publish", "--state", r.state, "--clock")
	if !strings.Contains(said, "published the clock event at position") {
		t.Errorf("publish says %q", said)
	}
	r.run()
	text, err := os.ReadFile(r.output)
	if err != nil {
		t.Fatal(err)
	}
	replayed, _ := mustRun(t, "replay", "--config", r.config, "--state", r.state)
	if len(text) == 0 || replayed != string(text) {
		t.Errorf("published\n%s\nreplayed\n%s", text, replayed)
	}
}
