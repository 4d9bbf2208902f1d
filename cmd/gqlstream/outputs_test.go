package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// oneCheckpointARun is crashConfig with the checkpoint at the end of a run alone:
// however slow the machine, the run before is not forgotten.
var oneCheckpointARun = strings.Replace(
	crashConfig, "checkpoint: {every: 200ms}", "checkpoint: {every: 24h}", 1,
)

// The newest estimates and refusals that a broker loses with the power, although
// it has acknowledged them and a checkpoint is newer, must be published again, the
// same bytes, and no other twice.
func TestLostOutputsArePublishedAgain(t *testing.T) {
	for seed := range uint64(3) {
		h := newHistory(t, rand.NewPCG(seed, 22), oneCheckpointARun)
		h.events.nobodyErased = true // an erasure drops the checkpoint to go back to
		streams := filepath.Join(h.dir, "nats", "jetstream", "$G", "streams")
		old := filepath.Join(t.TempDir(), "streams")
		lost := []string{"GQL_ESTIMATES", "GQL_QUARANTINE"}[:1+seed%2]
		h.publish(h.dir, 30)
		h.run(h.dir)
		if err := os.CopyFS(old, os.DirFS(streams)); err != nil {
			t.Fatal(err)
		}
		h.publish(h.dir, 30)
		h.run(h.dir)
		for _, stream := range lost {
			if err := os.RemoveAll(filepath.Join(streams, stream)); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(old, stream),
				filepath.Join(streams, stream)); err != nil {
				t.Fatal(err)
			}
		}
		_, said := mustRun(t, "run", "--config", h.config, "--state", h.dir, "--exit-when-drained")
		if !strings.Contains(said, "going back to an older checkpoint") {
			t.Errorf("seed %d: the loss was not noticed:\n%s", seed, said)
		}
		r := &crashRun{t: t, seed: seed, dir: h.dir, config: h.config}
		r.compareOutputs()
		t.Logf("seed %d: %v lost and published again: %v", seed, lost, r.report)
	}
}

// A stream of estimates that somebody has removed must not keep a run from going
// on, since its log may be purged by then.
func TestRemovedEstimatesDoNotStopARun(t *testing.T) {
	h := newHistory(t, rand.NewPCG(1, 23), crashConfig)
	h.publish(h.dir, 30)
	h.run(h.dir)
	if err := os.RemoveAll(filepath.Join(h.dir, "nats", "jetstream", "$G", "streams",
		"GQL_ESTIMATES")); err != nil {
		t.Fatal(err)
	}
	_, said := mustRun(t, "run", "--config", h.config, "--state", h.dir, "--exit-when-drained")
	if !strings.Contains(said, "the run continues without them") ||
		!strings.Contains(said, "msg=restored") {
		t.Errorf("the run says\n%s", said)
	}
}

// An operator who begins a new log and accepts it keeps the stream of alerts. A run that is
// drained must end although the newest alerts belong to the old log, and the file of alerts
// takes none of them.
func TestAlertsOfAnotherLogDoNotHoldADrainedRun(t *testing.T) {
	dir := t.TempDir()
	state, conf := filepath.Join(dir, "state"), filepath.Join(dir, "gqlstream.yaml")
	log, output := filepath.Join(dir, "log.ndjson"), filepath.Join(dir, "alerts.ndjson")
	run := func(rule string, args ...string) {
		t.Helper()
		testfile.Write(t, conf, "{classes: 2, state: "+state+", output: {alerts: "+output+"},"+
			" communities: [{name: all, everyone: true}], privacy: {min_members: 0},"+
			" step: {every: 100ms, time: event}, alerts: [{name: a, when: "+rule+
			", suppress: []}]}")
		mustRun(t, "publish", "--state", state, "--classes", "2", "--log", log)
		mustRun(t, append([]string{"run", "--config", conf, "--exit-when-drained"}, args...)...)
	}
	mustRun(t, "simulate", "--vertices", "200", "--duration", "2s", "--out", log)
	run("point > 0.1")
	if text, err := os.ReadFile(output); err != nil || len(text) == 0 {
		t.Fatalf("no alerts: %v", err)
	}
	streams := filepath.Join(state, "nats", "jetstream", "$G", "streams")
	for _, path := range []string{
		filepath.Join(streams, "GQL"), filepath.Join(streams, "GQL_ESTIMATES"),
		filepath.Join(state, "checkpoints"), filepath.Join(state, "alerting.json"),
		output, output + ".position",
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	run("cusum > 1000000", "--accept-log")
	if text, err := os.ReadFile(output); err != nil || len(text) > 0 {
		t.Errorf("alerts of the log that is no more: %v\n%s", err, text)
	}
}

// Values that the bucket has lost must be there after the next start: the broker copies
// them from the output log.
func TestLostLatestAreMended(t *testing.T) {
	for seed := range uint64(2) {
		h := newHistory(t, rand.NewPCG(seed, 24), oneCheckpointARun)
		h.events.nobodyErased = true
		for range 3 { // at first too few are German to be published
			h.publish(h.dir, 10)
			h.run(h.dir)
		}
		if err := os.RemoveAll(filepath.Join(h.dir, "nats", "jetstream", "$G", "streams",
			"KV_gql_estimates")); err != nil {
			t.Fatal(err)
		}
		mustRun(t, "run", "--config", h.config, "--state", h.dir, "--exit-when-drained")
		r := &crashRun{t: t, seed: seed, dir: h.dir, config: h.config}
		r.compareOutputs()
	}
}

// A run with --exit-when-drained must not wait for an output that cannot be opened. It must fail
// with the reason.
func TestADrainedRunFailsForAnOutputThatCannotBeOpened(t *testing.T) {
	state, nowhere := t.TempDir(), filepath.Join(t.TempDir(), "nowhere", "x")
	code, _, said := runCommand(
		"run", "--classes", "2", "--everyone", "--state", state, "--exit-when-drained", "--output",
		nowhere,
	)
	if code != exitFailed || !strings.Contains(said, nowhere+": no such file or directory") {
		t.Errorf("exit %d\n%s", code, said)
	}
}

// A log without events must be said to be empty: it may be another one than was meant.
func TestAnEmptyLogIsReported(t *testing.T) {
	state, empty := t.TempDir(), filepath.Join(t.TempDir(), "empty.ndjson")
	testfile.Write(t, empty, "")
	for _, c := range []struct{ command, want string }{
		{"run --exit-when-drained --state " + state, "the log was empty"},
		{"replay --log " + empty, "there were no events"},
	} {
		code, _, said := runCommand(
			append(strings.Fields(c.command), "--classes", "2", "--everyone")...)
		if code != exitFine || strings.Count(said, c.want) != 1 ||
			strings.Contains(said, "no events were read") {
			t.Errorf("%s: exit %d\n%s", c.command, code, said)
		}
	}
}
