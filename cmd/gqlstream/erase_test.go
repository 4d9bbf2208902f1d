package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
)

// Names and values of an erased person that must be found nowhere.
const (
	erasedName   = "alice-the-erased"
	erasedSecret = "alice@example.org"
)

// eraseConfig makes no checkpoints of its own, so that those of an erasure show.
const eraseConfig = `
classes: 2
communities: [{name: all, everyone: true}]
estimates: [{method: auto}]
step: {every: 1s, time: event}
checkpoint: {every: -1s}
late: {after: 1h, divert: [labels]}
privacy: {min_members: 0}
http: {listen: "off"}
`

// person is everything that can be said of alice, at a time of the log.
func person(at int) map[event.Kind]string {
	return map[event.Kind]string{
		event.KindEdge: fmt.Sprintf(
			`[{"src":%q,"dst":"bob","ttl":"90m","time":%d},{"src":"bob","dst":"eve","time":%d}]`,
			erasedName, at, at,
		),
		event.KindLabel: fmt.Sprintf(
			`[{"vertex":%q,"class":1,"ttl":"90m","time":%d},{"vertex":%q,"class":7,"time":%d}]`,
			erasedName, at, erasedName, at,
		),
		event.KindPrediction: fmt.Sprintf(
			`{"vertex":%q,"p":[0.25,0.75],"version":"m","ttl":"90m","time":%d}`,
			erasedName,
			at,
		),
		event.KindPost: fmt.Sprintf(`{"author":%q,"p":[0.25,0.75],"time":%d}`, erasedName, at),
		event.KindMember: fmt.Sprintf(
			`{"community":"readers","vertex":%q,"time":%d}`,
			erasedName,
			at,
		),
		event.KindVertex: fmt.Sprintf(
			`{"vertex":%q,"attributes":{"mail":%q},"time":%d}`, erasedName, erasedSecret, at,
		),
	}
}

func erasure(at int) string {
	return fmt.Sprintf(`{"vertex":%q,"erase":true,"time":%d}`, erasedName, at)
}

func tick(op string, at int) string { return fmt.Sprintf(`{"op":%q,"time":%d}`, op, at) }

// eraseRun is a pipeline that runs while the test publishes.
type eraseRun struct {
	t      *testing.T
	state  string
	js     jetstream.JetStream
	p      *pipeline.Pipeline
	cancel context.CancelFunc
	done   chan error
}

func startErase(t *testing.T, state, url, conf string) *eraseRun {
	t.Helper()
	path := filepath.Join(t.TempDir(), "erase.yaml")
	testfile.Write(t, path, conf)
	settings, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.NATS.URL = state, url
	ctx, cancel := context.WithCancel(t.Context())
	p, err := pipeline.Open(
		ctx,
		settings,
		pipeline.Options{Out: io.Discard, Log: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		t.Fatal(err)
	}
	r := &eraseRun{
		t:      t,
		state:  state,
		js:     p.Broker.JS,
		p:      p,
		cancel: cancel,
		done:   make(chan error, 1),
	}
	go func() { r.done <- p.Run(ctx) }()
	return r
}

// stop ends the pipeline as a signal does.
func (r *eraseRun) stop() {
	r.t.Helper()
	r.cancel()
	<-r.done
	if err := r.p.Close(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *eraseRun) publish(kind event.Kind, payload string) {
	r.t.Helper()
	if _, err := r.js.PublishMsg(r.t.Context(), &nats.Msg{
		Subject: "gql." + kind.String(),
		Data:    []byte(payload),
	}); err != nil {
		r.t.Fatal(err)
	}
}

// waitFor waits until the state directory has checkpoints as wanted.
func (r *eraseRun) waitFor(what string, is func(positions []uint64) bool) {
	r.t.Helper()
	for deadline := time.Now().Add(crashStartMax); ; pause(r.t.Context(), 2*time.Millisecond) {
		positions, err := r.p.Checkpoints.Dir.List()
		if err == nil && is(positions) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: there are checkpoints %v (%v)", what, positions, err)
		}
	}
}

// filesHold reports whether a file below dir holds the text.
func filesHold(t *testing.T, dir, text string) (where string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			where = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return where
}

// messageHolds returns the first message of a stream that holds the text, 0 if none
// does.
func messageHolds(t *testing.T, js jetstream.JetStream, stream, text string) uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	state := s.CachedInfo().State
	for sequence := max(1, state.FirstSeq); sequence <= state.LastSeq; sequence++ {
		m, err := s.GetMsg(t.Context(), sequence)
		if err == nil &&
			(bytes.Contains(m.Data, []byte(text)) || strings.Contains(fmt.Sprint(m.Header), text)) {
			return sequence
		}
	}
	return 0
}

// After an erasure the name must be gone from every checkpoint as soon as the log's
// time has passed two multiples of a minute, and after a purge from every message of
// the log and of the quarantine: with the real pipeline and a server on a port.
func TestErasedPersonIsGone(t *testing.T) {
	server, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	state, url := t.TempDir(), server.URL()
	checkpoints := filepath.Join(state, "checkpoints")
	purge := func(args ...string) (int, string) {
		code, out, diagnostics := runCommand(
			append([]string{"purge", "--state", state, "--nats", url}, args...)...)
		return code, out + diagnostics
	}
	r := startErase(t, state, url, eraseConfig)
	const minute = 1_000_000 * 60
	for i := range 3 {
		for kind := range event.KindControl {
			r.publish(kind, person(minute + i)[kind])
		}
		r.publish(event.KindControl, tick("checkpoint", minute+10+i))
		r.waitFor("before the erasure", func(p []uint64) bool { return len(p) == i+1 })
		if i > 0 {
			continue
		}
		if code, said := purge(); code != exitFailed ||
			!strings.Contains(said, "1 checkpoints") ||
			!strings.Contains(said, "needs two") {
			t.Errorf("a purge with one checkpoint: exit %d, %s", code, said)
		}
	}
	if filesHold(t, checkpoints, erasedName) == "" ||
		filesHold(t, checkpoints, erasedSecret) == "" {
		t.Fatal("the checkpoints do not hold what is to be erased")
	}
	subject, err := questions(t.Context(), r.js, broker.DefaultStreamNames())
	if err != nil {
		t.Fatal(err)
	}
	question := fmt.Sprintf(`{"vertex": %q, "communities": ["readers"]}`, erasedName)
	if _, err := r.js.Publish(t.Context(), subject, []byte(question)); err != nil {
		t.Fatal(err)
	}
	r.publish(event.KindVertex, erasure(minute+20))
	if code, said := purge("--dry-run"); code != exitFine ||
		!strings.Contains(said, "still holds data that was erased at 22") {
		t.Errorf("a purge before any checkpoint has the erasure: exit %d, %s", code, said)
	}
	r.publish(event.KindControl, tick("tick", minute+61)) // the first minute is over
	r.publish(event.KindControl, tick("tick", minute+70)) // and its step
	r.waitFor(
		"after a minute",
		func(p []uint64) bool { return len(p) == 3 && p[0] > 22 && p[1] < 22 },
	)
	if code, said := purge("--dry-run"); code != exitFine ||
		!strings.Contains(said, "still holds data that was erased at 22") {
		t.Errorf("a purge too early: exit %d, %s", code, said)
	}
	r.publish(event.KindControl, tick("tick", minute+121)) // the second is over
	r.publish(event.KindControl, tick("tick", minute+130))
	r.waitFor("after two minutes", func(p []uint64) bool { return len(p) == 2 })
	for _, text := range []string{erasedName, erasedSecret} {
		if where := filesHold(t, checkpoints, text); where != "" {
			t.Errorf("%s holds %s", where, text)
		}
	}
	checkPurged(r, purge)
	r.publish(event.KindEdge, fmt.Sprintf(`{"src":"bob","dst":"dan","time":%d}`, minute+140))
	r.publish(event.KindControl, tick("checkpoint", minute+150))
	r.waitFor("after the purge", func(p []uint64) bool { return len(p) == 3 })
	r.stop()
	again := startErase(t, state, url, eraseConfig) // continues with the remaining state
	if at := again.p.Position(); at != 28 {
		t.Errorf("restored at %d", at)
	}
	again.stop()
}

// checkPurged purges the log and the quarantine and looks for the name in them.
func checkPurged(r *eraseRun, purge func(...string) (int, string)) {
	r.t.Helper()
	names := broker.DefaultStreamNames()
	asked := questionStream(names.Log)
	for _, stream := range []string{names.Log, names.Quarantine, asked} {
		if messageHolds(r.t, r.js, stream, erasedName) == 0 {
			r.t.Fatalf("stream %s does not hold what is to be erased", stream)
		}
	}
	code, said := purge("--quarantine")
	if code != exitFine || !strings.Contains(said, "deleted messages 1 to ") ||
		!strings.Contains(said, "deleted 3 entries of the quarantine") ||
		!strings.Contains(said, "deleted 1 questions about erased people") ||
		!strings.Contains(said, "done: the log holds no data from before the erasure at 22") ||
		!strings.Contains(said, "may still hold it: the broker's newest file of the log") ||
		strings.Contains(said, "may still hold it: the quarantine") {
		r.t.Errorf("the purge: exit %d, %s", code, said)
	}
	for _, stream := range []string{
		names.Log, names.Quarantine, asked, defaultNames().Estimates, "KV_" + defaultNames().Latest,
	} {
		for _, text := range []string{erasedName, erasedSecret} {
			if sequence := messageHolds(r.t, r.js, stream, text); sequence != 0 {
				r.t.Errorf("message %d of stream %s holds %s", sequence, stream, text)
			}
		}
	}
}

// The broker's own files must not hold the name either, once the log has grown past the
// file with the name and is purged.
func TestErasedPersonIsGoneFromTheBrokersFiles(t *testing.T) {
	dir := t.TempDir()
	server, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	state := t.TempDir()
	r := startErase(t, state, server.URL(), eraseConfig)
	const minute = 1_000_000 * 60
	for kind := range event.KindControl {
		r.publish(kind, person(minute)[kind])
	}
	r.publish(event.KindVertex, erasure(minute+20))
	padding := strings.Repeat(" ", 900<<10)
	for i := range 12 { // more than a file of 8 MiB
		r.publish(event.KindControl, padding+tick("tick", minute+30+i))
	}
	for i := range 2 {
		r.publish(event.KindControl, tick("checkpoint", minute+50+i))
	}
	r.waitFor("two", func(p []uint64) bool { return len(p) == 2 })
	if filesHold(t, dir, erasedName) == "" {
		t.Fatal("the broker's files do not hold what is to be erased")
	}
	mustRun(t, "purge", "--state", state, "--nats", server.URL(), "--quarantine")
	r.stop()
	if where := filesHold(t, dir, erasedName); where != "" {
		t.Errorf("%s holds the name", where)
	}
	if where := filesHold(t, state, erasedName); where != "" {
		t.Errorf("%s holds the name", where)
	}
}
