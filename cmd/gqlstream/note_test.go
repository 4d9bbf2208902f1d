package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// A note must be in the output, in a replay and in the history, once each, however often
// the run starts.
func TestNotesReachPeopleAndReplays(t *testing.T) {
	dir := t.TempDir()
	conf, state, output := filepath.Join(dir, "gqlstream.yaml"), filepath.Join(
		dir,
		"state",
	), filepath.Join(dir, "out")
	writeConfig(t, conf, crashConfig)
	run := func() {
		mustRun(
			t, "run", "--config", conf, "--state", state, "--output", output, "--exit-when-drained",
		)
	}
	run()
	said, _ := mustRun(t, "publish", "--state", state, "--note", "debate <tonight>")
	if !strings.Contains(said, "published the note at position") {
		t.Errorf("publish says %q", said)
	}
	run()
	run()
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"note":"debate <tonight>","position":`
	const kept = `{"note":"debate \u003ctonight\u003e","position":` // the same text in JSON
	if strings.Count(string(text), want) != 1 {
		t.Errorf("the output is\n%s", text)
	}
	if replayed, _ := mustRun(t, "replay", "--config", conf, "--state", state); strings.Count(
		replayed,
		want,
	) != 1 {
		t.Errorf("a replay prints\n%s", replayed)
	}
	withBroker(t, state, func(js jetstream.JetStream) {
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
		if code, _, errors := runCommand(append([]string{"publish", "--state", state},
			wrong...)...); code != 2 {
			t.Errorf("%v: code %d: %s", wrong, code, errors)
		}
	}
}

// A clock event must be published by the command, applied by a run, and replayed to the same bytes.
func TestClockEventsAreReplayed(t *testing.T) {
	dir := t.TempDir()
	conf, state, output := filepath.Join(dir, "gqlstream.yaml"), filepath.Join(
		dir,
		"state",
	), filepath.Join(dir, "out")
	writeConfig(t, conf, crashConfig)
	run := func() {
		mustRun(
			t, "run", "--config", conf, "--state", state, "--output", output, "--exit-when-drained",
		)
	}
	run()
	data := filepath.Join("..", "..", "examples", "data")
	mustRun(
		t, "publish", "--state", state, "--edges", filepath.Join(data, "edges.csv"), "--labels",
		filepath.Join(data, "labels.csv"), "--predictions", filepath.Join(data, "predictions.csv"),
		"--classes", "left,right",
	)
	if said, _ := mustRun(t, "publish", "--state", state, "--clock"); !strings.Contains(
		said,
		"published the clock event at position",
	) {
		t.Errorf("publish says %q", said)
	}
	run()
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	if replayed, _ := mustRun(t, "replay", "--config", conf, "--state", state); len(text) == 0 ||
		replayed != string(text) {
		t.Errorf("published\n%s\nreplayed\n%s", text, replayed)
	}
}
