package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
)

// The limits that a run derives from its machine must be stored in the log, so that another
// machine refuses the same events. The run prints them at its start; the next run and the
// replay use the stored ones.
func TestLimitsAreThoseOfTheLog(t *testing.T) {
	state, config := t.TempDir(), filepath.Join(t.TempDir(), "gqlstream.yaml")
	output := filepath.Join(t.TempDir(), "estimates.ndjson")
	testfile.Write(t, config, crashConfig)
	small := event.Limits{Vertices: 12, Edges: 20, Communities: 3, Memberships: 22}
	withBroker(t, state, func(js jetstream.JetStream) {
		names := broker.DefaultStreamNames()
		if err := broker.EnsureStreams(t.Context(), js, names); err != nil {
			t.Fatal(err)
		}
		for _, want := range []event.Limits{small, {Vertices: 99}} { // the first one stands
			if got, err := ingest.RecordLimits(t.Context(), js, names.Log, want); got != small ||
				err != nil {
				t.Fatalf("recorded %+v, %v", got, err)
			}
		}
	})
	publishRandom(
		t, state, &crashEvents{rand: rand.New(rand.NewPCG(6, 12)), nobodyErased: true}, 60,
	)
	_, said := mustRun(
		t, "run", "--config", config, "--state", state, "--exit-when-drained", "--output", output,
	)
	for _, want := range []string{
		"vertices=12 edges=20 communities=3 memberships=22",
		"what=vertices used=12 limit=12", "than this machine has",
	} {
		if want == "than this machine has" == strings.Contains(said, want) { // it has more
			t.Errorf("the run says\n%s", said)
		}
	}
	if list, _ := mustRun(t, "quarantine", "list", "--state", state, "--reason",
		"limit-exceeded"); !strings.Contains(list, "limit") {
		t.Errorf("nothing was refused beyond the limits:\n%s", list)
	}
	replayed, _ := mustRun(t, "replay", "--config", config, "--state", state)
	published, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	sameLines(t, "replay", replayed, strings.Split(strings.TrimSpace(string(published)), "\n"))
}

// A run on a log without limits must derive them from the memory of the machine, and must
// not change a configured limit.
func TestLimitsFollowTheMachine(t *testing.T) {
	state, config := t.TempDir(), filepath.Join(t.TempDir(), "gqlstream.yaml")
	testfile.Write(t, config, crashConfig+"limits: {edges: 77}\n")
	publishRandom(t, state, &crashEvents{rand: rand.New(rand.NewPCG(6, 12))}, 5)
	_, said := mustRun(t, "run", "--config", config, "--state", state, "--exit-when-drained")
	if !strings.Contains(said, " edges=77 ") || strings.Contains(said, " vertices=0 ") {
		t.Errorf("the run says\n%s", said)
	}
}
