package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// run --skip must skip a message that makes every start fail. The log records the decision,
// and the replay skips the message too. A message that is already applied cannot be
// skipped.
func TestRunAndReplaySkipARecordedMessage(t *testing.T) {
	state, config := t.TempDir(), filepath.Join(t.TempDir(), "gqlstream.yaml")
	output := filepath.Join(t.TempDir(), "estimates.ndjson")
	testfile.Write(t, config, crashConfig)
	publishRandom(t, state, &crashEvents{rand: rand.New(rand.NewPCG(5, 12))}, 40)
	run := []string{
		"run",
		"--config",
		config,
		"--state",
		state,
		"--exit-when-drained",
		"--output",
		output,
	}
	if code, _, said := runCommand(append(run, "--skip", "17")...); code != exitFine ||
		!strings.Contains(said, "positions=17") {
		t.Fatalf("exit %d\n%s", code, said)
	}
	if code, _, said := runCommand(append(run, "--skip", "18")...); code != exitUsage ||
		!strings.Contains(said, "has applied it") {
		t.Errorf("a message that is applied: exit %d\n%s", code, said)
	}
	if list, _ := mustRun(t, "quarantine", "list", "--state", state, "--reason",
		"skipped"); !strings.Contains(list, " 17 ") {
		t.Errorf("the quarantine has\n%s", list)
	}
	replayed, _ := mustRun(t, "replay", "--config", config, "--state", state)
	published, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	sameLines(t, "replay", replayed, strings.Split(strings.TrimSpace(string(published)), "\n"))
}
