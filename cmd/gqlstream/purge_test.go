package main

import (
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// After a purge a run must go on from its checkpoint, the rest must be replayable
// from there, and a replay from the beginning must be refused.
func TestPurgedLogGoesOn(t *testing.T) {
	state, config, _ := savedState(t, 6)
	rows := strings.Split(strings.TrimSpace(mustList(t, state)), "\n")[1:]
	second := strings.Fields(rows[1])[0]
	would, _ := mustRun(t, "purge", "--state", state, "--dry-run")
	mustRun(t, "replay", "--config", config, "--state", state) // all of it is there
	did, _ := mustRun(t, "purge", "--state", state)
	if strings.TrimPrefix(would, "would delete ") != strings.TrimPrefix(did, "deleted ") ||
		would == did {
		t.Errorf("a dry run says %q, the purge %q", would, did)
	}
	if again, _ := mustRun(t, "purge", "--state", state); !strings.HasPrefix(
		again,
		"nothing to delete: the log begins at "+second+"\n",
	) {
		t.Errorf("a second purge: %q, want a log that begins at %s", again, second)
	}
	code, _, text := runCommand("replay", "--config", config, "--state", state)
	if code != exitFailed || !strings.Contains(text, "it begins at "+second+"; --use-checkpoint") {
		t.Errorf("replay of a purged log: exit %d, %s", code, text)
	}
	_, said := mustRun(t, "run", "--config", config, "--state", state, "--exit-when-drained")
	if !strings.Contains(said, "msg=restored") {
		t.Errorf("the run after a purge:\n%s", said)
	}
	if out, _ := mustRun(t, "replay", "--config", config, "--state", state, "--use-checkpoint",
		"--from", second); out == "" {
		t.Error("nothing comes of the rest of the log")
	}
	whole := filepath.Join(t.TempDir(), "whole.yaml") // names the state directory as well
	testfile.Write(t, whole, "state: "+state+"\n"+savedConfig)
	if out, _ := mustRun(t, "replay", "--config", whole, "--use-checkpoint", "--from",
		second); out == "" {
		t.Error("the checkpoints of the state directory of a configuration are not used")
	}
	code, _, text = runCommand("purge", "--state", t.TempDir())
	if code != exitFailed || !strings.Contains(text, "needs two") {
		t.Errorf("a purge without checkpoints: exit %d, %s", code, text)
	}
}
