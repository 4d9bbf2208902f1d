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
	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
	"gqlstream/pipeline/config"
)

// historyFault makes the log of a state directory another one than its
// checkpoints were made of.
type historyFault struct {
	name string
	make func(h *history)
	want []string // in the message: the fault and an action
}

// whatToDo stands in the message of every broken history.
const whatToDo = "Restore a backup of the log, or continue with the present log: run --accept-log"

var historyFaults = []historyFault{
	{
		"recreated stream",
		(*history).recreate,
		[]string{"is not the log that was read before", whatToDo},
	},
	{"trimmed below the position", (*history).trim, []string{"are gone", "run --skip"}},
	{
		"trimmed and without a checkpoint",
		(*history).trimAll,
		[]string{"are gone", "run --skip"},
	},
	{
		"older copy of the store",
		(*history).setBack,
		[]string{"an older copy of its store was restored", whatToDo},
	},
	{
		"older copy that went on otherwise",
		(*history).fork,
		[]string{"is another one now", whatToDo},
	},
	{
		"wrong stream",
		(*history).foreignStream,
		[]string{"is not the log that was read before", whatToDo},
	},
	{
		"wrong state directory",
		(*history).foreignState,
		[]string{"is not the log that was read before", whatToDo},
	},
	{
		"older copy and no checkpoint",
		(*history).setBackWithoutCheckpoints,
		[]string{"reached: ", "it ends at", whatToDo},
	},
	{
		"older copy and only an output's position",
		(*history).setBackUnderAnOutput,
		[]string{"history.json: ", "it ends at", whatToDo},
	},
	{
		"broker that came back empty",
		(*history).loseStore,
		[]string{"the broker has no log GQL", "gqlstream restore", "--accept-log"},
	},
	{
		"stream that loses events",
		(*history).unsafe,
		[]string{"deny_delete", "create the stream again"},
	},
	{
		"two processes",
		(*history).occupy,
		[]string{"is in use by another gqlstream", "stop that one, or choose another"},
	},
}

// However the history is broken, a start must end with a message that names the fault and
// an action, and publish nothing. GQLSTREAM_HISTORIES sets the number of tries of each kind
// (make faults: 100).
func TestBrokenHistoriesStopTheRun(t *testing.T) {
	count := campaign.Size(t, "GQLSTREAM_HISTORIES", 2)
	for _, fault := range historyFaults {
		t.Run(fault.name, func(t *testing.T) {
			message := ""
			for seed := range uint64(count) {
				message = breakHistory(t, seed, fault)
			}
			t.Logf("%d times: %s", count, message)
		})
	}
}

// breakHistory runs over random events, breaks the history and runs again. It
// returns the message of the second run.
func breakHistory(t *testing.T, seed uint64, fault historyFault) string {
	t.Helper()
	h := newHistory(t, rand.NewPCG(seed, 21), crashConfig)
	h.publish(h.dir, 1+h.rand.IntN(20))
	h.run(h.dir)
	fault.make(h)
	occupied := h.release != nil
	before := h.estimates()
	code, _, text := runCommand(
		"run", "--config", h.config, "--state", h.dir, "--exit-when-drained",
	)
	if h.release != nil {
		h.release()
	}
	for _, want := range fault.want {
		if code != exitFailed || !strings.Contains(text, want) {
			t.Fatalf("seed %d: exit %d, want %d and %q in\n%s", seed, code, exitFailed, want, text)
		}
	}
	if after := h.estimates(); after != before && !occupied {
		t.Fatalf(
			"seed %d: the broken run has published: %d estimates, before %d", seed, after, before,
		)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if message := lines[len(lines)-1]; strings.Contains(message, "go on") {
		h.goOn(message)
	}
	return lines[len(lines)-1]
}

// goOn takes the way on that a message names, and then starts once more without it. Every record
// that is published must be one of a replay over the log as it is.
func (h *history) goOn(message string) {
	h.t.Helper()
	way := []string{"--accept-log"}
	if _, skip, ok := strings.Cut(message, "run --skip "); ok {
		way = []string{"--skip", skip}
	}
	run := []string{"run", "--config", h.config, "--state", h.dir, "--exit-when-drained"}
	_, said := mustRun(h.t, append(run, way...)...)
	h.publish(h.dir, 5)
	if code, _, text := runCommand(run...); code != exitFine {
		h.t.Fatalf("%s: exit %d\n%s\nafter\n%s", message, code, text, said)
	}
}

// history is a state directory with a log that is about to be broken.
type history struct {
	t       *testing.T
	rand    *rand.Rand
	events  *crashEvents
	dir     string
	config  string
	release func() // removes the obstacle of a start
}

// newHistory returns an empty state directory and a configuration for it.
func newHistory(t *testing.T, source rand.Source, conf string) *history {
	t.Helper()
	h := &history{
		t:      t,
		rand:   rand.New(source),
		dir:    t.TempDir(),
		config: filepath.Join(t.TempDir(), "gqlstream.yaml"),
	}
	h.events = &crashEvents{rand: h.rand}
	testfile.Write(t, h.config, conf)
	return h
}

func (h *history) publish(state string, messages int) {
	h.t.Helper()
	b, err := config.OpenBroker(config.Settings{State: state}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer b.Close()
	if err := broker.EnsureStreams(h.t.Context(), b.JS, broker.DefaultStreamNames()); err != nil {
		h.t.Fatal(err)
	}
	h.send(b, messages)
}

func (h *history) send(b *broker.Broker, messages int) {
	h.t.Helper()
	p, err := ingest.NewPublisher(b.NC, ingest.PublisherConfig{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer p.Close()
	for range messages {
		if err := p.Publish(h.t.Context(), h.events.next()); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := p.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) run(state string) {
	h.t.Helper()
	mustRun(h.t, "run", "--config", h.config, "--state", state, "--exit-when-drained")
}

// log calls use with the log's stream.
func (h *history) log(use func(jetstream.JetStream, jetstream.Stream)) {
	h.t.Helper()
	withBroker(h.t, h.dir, func(js jetstream.JetStream) {
		s, err := js.Stream(h.t.Context(), broker.DefaultStreamNames().Log)
		if err != nil {
			h.t.Fatal(err)
		}
		use(js, s)
	})
}

// estimates counts the published records, unless the directory is in use.
func (h *history) estimates() (n uint64) {
	if h.release != nil {
		return 0
	}
	withBroker(h.t, h.dir, func(js jetstream.JetStream) {
		if s, err := js.Stream(h.t.Context(), defaultNames().Estimates); err == nil {
			n = s.CachedInfo().State.Msgs
		}
	})
	return n
}

// recreate deletes the log and makes it again, longer or shorter.
func (h *history) recreate() {
	h.log(func(js jetstream.JetStream, s jetstream.Stream) {
		if err := js.DeleteStream(h.t.Context(), s.CachedInfo().Config.Name); err != nil {
			h.t.Fatal(err)
		}
	})
	h.publish(h.dir, 1+h.rand.IntN(40))
}

func (h *history) trim() {
	h.publish(h.dir, 5)
	h.log(func(_ jetstream.JetStream, s jetstream.Stream) {
		upTo := s.CachedInfo().State.LastSeq - uint64(h.rand.IntN(5))
		if err := s.Purge(h.t.Context(), jetstream.WithPurgeSequence(upTo+1)); err != nil {
			h.t.Fatal(err)
		}
	})
}

func (h *history) trimAll() {
	h.trim()
	if err := os.RemoveAll(filepath.Join(h.dir, "checkpoints")); err != nil {
		h.t.Fatal(err)
	}
}

// setBack puts the store back to before the last run.
func (h *history) setBack() { h.setBackBy(0) }

// fork does so, and lets it go on with other events.
func (h *history) fork() { h.setBackBy(60) }

// setBackWithoutCheckpoints sets the log back and leaves only the note after the last step.
func (h *history) setBackWithoutCheckpoints() {
	h.setBackBy(0)
	h.remove("checkpoints")
}

// setBackUnderAnOutput sets the log back and leaves only the positions of the followers.
func (h *history) setBackUnderAnOutput() {
	h.setBackBy(0)
	h.remove("checkpoints", "reached", "alerting.json")
}

// loseStore empties the broker.
func (h *history) loseStore() { h.remove("nats") }

func (h *history) remove(names ...string) {
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(h.dir, name)); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *history) setBackBy(other int) {
	store, old := filepath.Join(h.dir, "nats"), filepath.Join(h.t.TempDir(), "copy")
	if err := os.CopyFS(old, os.DirFS(store)); err != nil {
		h.t.Fatal(err)
	}
	h.publish(h.dir, 2+h.rand.IntN(20))
	h.run(h.dir)
	if err := os.RemoveAll(store); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(old, store); err != nil {
		h.t.Fatal(err)
	}
	if other > 0 {
		h.publish(h.dir, other)
	}
}

// other makes a second state directory with a run of its own.
func (h *history) other() string {
	dir := h.t.TempDir()
	h.publish(dir, 1+h.rand.IntN(30))
	h.run(dir)
	return dir
}

// foreignStream puts the store of another state directory under the checkpoints.
func (h *history) foreignStream() { h.replace("nats") }

// foreignState puts the checkpoints of another state directory over the store.
func (h *history) foreignState() { h.replace("checkpoints") }

func (h *history) replace(part string) {
	if err := os.RemoveAll(filepath.Join(h.dir, part)); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(h.other(), part), filepath.Join(h.dir, part)); err != nil {
		h.t.Fatal(err)
	}
}

// unsafe makes the log a stream that allows the deletion of single events. The server
// restarts in between, because it is slow to forget a name.
func (h *history) unsafe() {
	var conf jetstream.StreamConfig
	h.log(func(js jetstream.JetStream, s jetstream.Stream) {
		conf = s.CachedInfo().Config
		if err := js.DeleteStream(h.t.Context(), conf.Name); err != nil {
			h.t.Fatal(err)
		}
	})
	withBroker(h.t, h.dir, func(js jetstream.JetStream) {
		conf.DenyDelete = false
		if _, err := js.CreateStream(h.t.Context(), conf); err != nil {
			h.t.Fatal(err)
		}
	})
}

// occupy is another owner of the directory.
func (h *history) occupy() {
	lock, err := broker.AcquireLock(h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	h.release = func() {
		if err := lock.Close(); err != nil {
			h.t.Fatal(err)
		}
		h.release = nil
	}
}
