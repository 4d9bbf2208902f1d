//go:build unix && !race

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/pipeline/group"
	"gqlstream/sinks"
)

// One worker, two and four must make the same of a log: records, alerts, roll-ups, files and
// refusals are held against one core that nothing disturbs. Each log has a configuration of its
// own. GQLSTREAM_WORKER_LOGS sets how many there are (make faults: 100).
func TestAnyNumberOfWorkersMakesTheSame(t *testing.T) {
	seed := campaign.Seed(t, 1)
	total := crashReport{}
	for range campaign.Size(t, "GQLSTREAM_WORKER_LOGS", 1) {
		g, settings := newWorkersRun(t, seed)
		want := g.undisturbed(g.js)
		for _, workers := range []int{1, 2, 4} {
			g.report = crashReport{}
			g.work(settings, workers, want)
			t.Logf("seed %d, %d workers, %s: %v", seed, workers, g.what, g.report)
			total.add(g.report)
			g.forget()
		}
		seed++
	}
	t.Logf("altogether: %v", total)
}

// workersRun is a log with a known end.
type workersRun struct {
	groupRun
	what string // its configuration, in short
	end  uint64
}

// newWorkersRun starts a server with a random log and writes a random configuration.
func newWorkersRun(t *testing.T, seed uint64) (*workersRun, config.Settings) {
	t.Helper()
	b := &outsideBroker{t: t, dir: t.TempDir(), port: server.RANDOM_PORT}
	b.start()
	t.Cleanup(b.stop)
	random := rand.New(rand.NewPCG(seed, 23))
	g := &workersRun{groupRun: groupRun{crashRun: crashRun{t: t, seed: seed, rand: random}}}
	dir := t.TempDir()
	g.config, g.output, g.alerts = filepath.Join(dir, "gqlstream.yaml"), filepath.Join(
		dir,
		"estimates.ndjson",
	), filepath.Join(dir, "alerts.ndjson")
	g.parts = filepath.Join(dir, "parts")
	classes := g.configure()
	settings, err := config.Load(g.config)
	g.must(err)
	settings.NATS.URL = b.ClientURL()
	client, err := config.OpenBroker(settings, nil)
	g.must(err)
	t.Cleanup(func() { client.Close() })
	g.js = client.JS
	g.must(broker.EnsureStreams(t.Context(), g.js, broker.DefaultStreamNames()))
	publisher, err := ingest.NewPublisher(client.NC, ingest.PublisherConfig{})
	g.must(err)
	defer publisher.Close()
	events := &crashEvents{rand: random, classes: classes}
	if settings.Step.Time == "event" {
		events.at = time.Now().Add(-20 * 24 * time.Hour)
	}
	for i := range 150 + random.IntN(150) {
		if !events.at.IsZero() {
			events.at = events.at.Add(time.Duration(random.ExpFloat64() * float64(20*time.Minute)))
		}
		g.must(publisher.Publish(t.Context(), events.next()))
		if i%50 == 0 {
			m := controlMessage("note")
			m.Data = []byte(`{"op":"note","text":"a note"}`)
			_, err := g.js.PublishMsg(t.Context(), m)
			g.must(err)
		}
	}
	g.must(publisher.Flush(t.Context()))
	ack, err := g.js.PublishMsg(t.Context(), controlMessage("flush", "checkpoint"))
	g.must(err)
	g.end = ack.Sequence
	return g, settings
}

// configure writes a random configuration and returns how many classes it has.
func (g *workersRun) configure() (classes int) {
	one := func(choices ...string) string { return choices[g.rand.IntN(len(choices))] }
	classes = 2 + g.rand.IntN(4)
	names := []string{"left", "right", "up", "down", "none"}[:classes]
	methods := []string{"auto", "pcc", "sis-nacc", "nacc", "diff", "sis", "ml"}
	g.rand.Shuffle(len(methods), func(i, j int) { methods[i], methods[j] = methods[j], methods[i] })
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("classes: [%s]", strings.Join(names, ", "))
	line(
		"communities:\n  - {name: everyone, everyone: true}\n  - {name: german, where: " +
			"{language: de}}",
	)
	if g.rand.IntN(2) == 0 {
		line("  - {name: around, ego: {root: 1, hops: 2}}")
	}
	line("estimates:")
	for _, m := range methods[:1+g.rand.IntN(3)] {
		line("  - {method: %s}", m)
	}
	line("%s", one("", "classifier: diffusion", "label_half_life: 6h"))
	line("%s", one("", "emit: {threshold: 0}", "emit: {threshold: 0.5, at_least_every: 1h}"))
	line(
		"%s",
		one(
			"", "", "kernel: truncated", "kernel: lazy", "kernel: shortest-path",
			"kernel: constant",
		),
	)
	line("%s", one("", "alpha: 0.4", "tolerance: 0.5", "models: {switch_at: 0.3}"))
	line(
		"%s",
		one(
			"", "late: {after: 10m}", "late: {after: 1m, divert: [edges, labels]}",
			"late: {after: 1m, divert: [predictions, members]}",
		),
	)
	line(
		"%s",
		one(
			"", "limits: {vertices: 30}", "limits: {edges: 40}", "limits: {communities: 5}",
			"control: {configure: deny}",
		),
	)
	mode, unit := "event", "m"
	if g.rand.IntN(4) == 0 {
		mode, unit = "received", "ms"
	}
	line("step: {every: %d%s, time: %s}", 20+g.rand.IntN(60), unit, mode)
	line("checkpoint: {every: %d%s}", 300+g.rand.IntN(600), unit)
	line("%s", one("", fmt.Sprintf("windows: {edges: 900%s, labels: 700%s}", unit, unit)))
	line("privacy: {min_members: 3}\nhttp: {listen: \"off\"}")
	shards, copies := one("1", "2", "5", "16"), one("1", "2")
	line("group: {shards: %s, copies: %s}", shards, copies)
	if g.rand.IntN(4) > 0 {
		line("%s", crashConfig[strings.Index(crashConfig, "alerts:"):])
	} else {
		g.alerts = ""
	}
	out := fmt.Sprintf("output: {every: %d%s, file: %s", 300+g.rand.IntN(600), unit, g.output)
	if g.alerts != "" {
		out += ", alerts: " + g.alerts
	}
	if mode == "event" && g.rand.IntN(2) == 0 { // else ticks begin further ones
		out += ", parquet: " + g.parts
	} else {
		g.parts = ""
	}
	line("%s}", out)
	testfile.Write(g.t, g.config, text.String())
	g.what = fmt.Sprintf(
		"%d classes, %v, %s shards, copies %s, %s time", classes, methods, shards, copies, mode,
	)
	return classes
}

// work lets workers read the log to its end, and compares their output with the twin.
func (g *workersRun) work(settings config.Settings, workers int, want twin) {
	g.t.Helper()
	ctx, cancel := context.WithCancel(g.t.Context())
	defer cancel()
	ended := make(chan error, workers)
	said := &logged{}
	for i := range workers {
		startWorker(ctx, settings, fmt.Sprint("w", i), g.t.TempDir(), said, ended)
	}
	g.awaitAll(settings, want, ended, said)
	cancel()
	for range workers {
		if err := <-ended; err != nil &&
			!errors.Is(err, context.Canceled) { // one that has not begun yet says so
			g.t.Fatalf("seed %d: a worker: %v\n%s", g.seed, err, said)
		}
	}
	g.compareGroup(g.end, want)
	g.compareParts(want)
}

// startWorker runs a worker in this process until ctx ends.
func startWorker(
	ctx context.Context, settings config.Settings, name, state string, said *logged,
	ended chan<- error,
) {
	settings.State = state
	go func() {
		ended <- pipeline.Run(ctx, func() (config.Settings, error) { return settings, nil },
			pipeline.Options{
				Group: "g", Worker: name, Out: io.Discard, Err: io.Discard,
				Log: slog.New(slog.NewTextHandler(said, nil)),
			})
	}()
}

// awaitAll waits until there is as much as there should be.
func (g *workersRun) awaitAll(settings config.Settings, want twin, ended chan error, said *logged) {
	g.t.Helper()
	enough := func() bool {
		marks, err := sinks.Marks(g.t.Context(), g.js, defaultNames())
		if err != nil || len(marks) < max(settings.Group.Shards, 1) ||
			slices.ContainsFunc(marks, func(m sinks.Mark) bool { return m.Position < g.end }) {
			return false
		}
		parts, _ := filepath.Glob(filepath.Join(g.parts, "*.parquet"))
		wanted, _ := filepath.Glob(filepath.Join(want.parts, "*.parquet"))
		return len(g.until(g.end, g.lines(g.output))) >= len(want.lines) &&
			(g.alerts == "" || len(g.until(g.end, g.lines(g.alerts))) >= len(want.alerts)) &&
			len(g.rolledUp(g.js, defaultNames(), g.end)) >= len(want.history) &&
			(g.parts == "" || len(parts) >= len(wanted))
	}
	for begun := time.Now(); !enough(); pause(g.t.Context(), 20*time.Millisecond) {
		select {
		case err := <-ended:
			g.t.Fatalf("seed %d: a worker ended by itself: %v\n%s", g.seed, err, said)
		default:
		}
		if time.Since(begun) > groupWaitMax {
			g.t.Fatalf(
				"seed %d: not everything is published after %v\n%s", g.seed, groupWaitMax, said,
			)
		}
	}
}

// forget removes all that workers have made of the log.
func (g *workersRun) forget() {
	for name := range g.streams() {
		if name != broker.DefaultStreamNames().Log && !strings.HasPrefix(name, twinNames.History) {
			g.must(g.js.DeleteStream(g.t.Context(), name))
		}
	}
	for _, path := range []string{g.output, g.alerts, g.parts} {
		if path != "" {
			g.must(errors.Join(os.RemoveAll(path), os.RemoveAll(path+".position")))
		}
	}
}

func (g *workersRun) streams() map[string]bool {
	names := map[string]bool{}
	list := g.js.StreamNames(g.t.Context())
	for name := range list.Name() {
		names[name] = true
	}
	g.must(list.Err())
	return names
}

// One wrong bit in the state of a worker must be found at one of the next checkpoints, because its
// digest differs from that of the other worker. Both workers must end, and the errors must name
// them.
func TestAWrongBitIsFoundByTheOtherWorkers(t *testing.T) {
	g, settings := newWorkersRun(t, campaign.Seed(t, 3))
	settings.Group.Copies = 2        // so that both have all shards
	settings.Limits = event.Limits{} // so that there is room for somebody
	settings.Output = config.Output{Every: settings.Output.Every}
	for _, m := range []*nats.Msg{
		{
			Subject: broker.Subject("GQL", event.KindEdge),
			Data: fmt.Appendf(nil, `{"src":"somebody","dst":1,"time":%q}`,
				time.Now().Format(time.RFC3339Nano)),
		},
		controlMessage("flush", "checkpoint"),
	} {
		ack, err := g.js.PublishMsg(t.Context(), m)
		g.must(err)
		g.end = ack.Sequence
	}
	said, ended := &logged{}, [2]chan error{make(chan error, 1), make(chan error, 1)}
	states := [2]string{t.TempDir(), t.TempDir()}
	await := func(ended <-chan error) error {
		select {
		case err := <-ended:
			return err
		case <-time.After(groupWaitMax):
			t.Fatalf("seed %d: a worker has not ended after %v\n%s", g.seed, groupWaitMax, said)
			return nil
		}
	}
	startWorker(t.Context(), settings, "w0", states[0], said, ended[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	startWorker(ctx, settings, "w1", states[1], said, ended[1])
	for _, state := range states {
		g.await("a checkpoint at the end of the log", said, func() bool {
			_, err := os.Stat(filepath.Join(state, "checkpoints", fmt.Sprintf("%020d", g.end)))
			return err == nil
		})
	}
	cancel()
	if err := await(ended[1]); err != nil {
		t.Fatalf("seed %d: a worker: %v\n%s", g.seed, err, said)
	}
	g.flipBit(filepath.Join(states[1], "checkpoints"))
	startWorker(t.Context(), settings, "w1", states[1], said, ended[1])
	g.await("a worker to end", said, func() bool {
		_, err := g.js.PublishMsg(t.Context(), controlMessage("flush", "checkpoint"))
		g.must(err)
		pause(t.Context(), time.Second)
		return len(ended[0])+len(ended[1]) > 0
	})
	for _, one := range ended {
		if err := await(one); err == nil || !strings.Contains(err.Error(), "the workers w") ||
			!strings.Contains(err.Error(), "have different states of") {
			t.Errorf(
				"seed %d: one of the two has a wrong bit, and a worker ends with: %v",
				g.seed,
				err,
			)
		}
	}
}

// A group must refuse the names of its classes in another order. The saved states of the workers
// hold no class names, so every share would get the name of another class.
func TestAGroupKeepsTheOrderOfItsClasses(t *testing.T) {
	g, settings := newWorkersRun(t, campaign.Seed(t, 5))
	settings.Output = config.Output{Every: settings.Output.Every}
	said, ended := &logged{}, make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	startWorker(ctx, settings, "w0", t.TempDir(), said, ended)
	g.await("all shards to be published", said, func() bool {
		marks, err := sinks.Marks(g.t.Context(), g.js, defaultNames())
		return err == nil && len(marks) == max(settings.Group.Shards, 1) &&
			!slices.ContainsFunc(marks, func(m sinks.Mark) bool { return m.Position < g.end })
	})
	cancel()
	settings.Classes = slices.Clone(settings.Classes)
	slices.Reverse(settings.Classes)
	for _, want := range []string{"", "Correct the mistake"} {
		select {
		case err := <-ended:
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Fatalf("seed %d: a worker ends with %v, want %q\n%s", g.seed, err, want, said)
			}
		case <-time.After(groupWaitMax):
			t.Fatalf("seed %d: a worker has not ended after %v\n%s", g.seed, groupWaitMax, said)
		}
		if want == "" {
			startWorker(t.Context(), settings, "w1", t.TempDir(), said, ended)
		}
	}
}

// A purge must keep the log that a worker with an empty disk needs: the part that follows the
// group's shared graph state. That graph state is older than the checkpoints of a worker.
func TestAWorkerJoinsAGroupAfterAPurge(t *testing.T) {
	g, settings := newWorkersRun(t, campaign.Seed(t, 7))
	settings.Output = config.Output{Every: settings.Output.Every}
	said, ended, state := &logged{}, make(chan error, 1), t.TempDir()
	published := func() bool {
		marks, err := sinks.Marks(g.t.Context(), g.js, defaultNames())
		return err == nil && len(marks) == max(settings.Group.Shards, 1) &&
			!slices.ContainsFunc(marks, func(m sinks.Mark) bool { return m.Position < g.end })
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	startWorker(ctx, settings, "w0", state, said, ended)
	for older := 0; older < 2; {
		ack, err := g.js.PublishMsg(t.Context(), controlMessage("flush", "checkpoint"))
		g.must(err)
		g.end = ack.Sequence
		g.await("a checkpoint", said, func() bool {
			_, err := os.Stat(filepath.Join(state, "checkpoints", fmt.Sprintf("%020d", g.end)))
			return err == nil && published()
		})
		if older++; g.keepsGraph(g.end) {
			older = 0
		}
	}
	cancel()
	g.must(<-ended)
	out, _ := mustRun(t, "purge", "--state", state, "--nats", settings.NATS.URL)
	if !strings.Contains(
		out,
		"a worker of the group may start from object bucket gql_group_g_state",
	) {
		t.Errorf("seed %d: what purge says:\n%s", g.seed, out)
	}
	ack, err := g.js.PublishMsg(t.Context(), controlMessage("flush", "checkpoint"))
	g.must(err)
	g.end = ack.Sequence
	startWorker(t.Context(), settings, "w1", t.TempDir(), said, ended)
	g.await("a worker with an empty disk to publish", said, func() bool {
		select {
		case err := <-ended:
			t.Fatalf("seed %d: the worker with an empty disk ends: %v\n%s", g.seed, err, said)
		default:
		}
		return published()
	})
}

// The pages of all workers must propose the same labels, although only one worker estimates the
// community. The proposal depends on the community's shares.
func TestPagesOfAGroupAskForTheSameLabels(t *testing.T) {
	g, settings := newWorkersRun(t, campaign.Seed(t, 9))
	settings.Output = config.Output{Every: settings.Output.Every}
	settings.Privacy.MembersMin = new(int) // everybody may be named
	settings.Group.Shards, settings.Group.Copies = 4, 1
	said, ended := &logged{}, make(chan error, 2)
	pages := [2]string{freeAddress(t), freeAddress(t)}
	for i, page := range pages {
		settings.HTTP.Listen = page
		startWorker(t.Context(), settings, fmt.Sprint("w", i), t.TempDir(), said, ended)
	}
	g.await(
		"both workers to have shards, and a checkpoint at the end of the log",
		said,
		func() bool {
			live, err := group.List(g.t.Context(), g.js, group.Bucket("", "g"))
			return err == nil && len(live) == 2 && len(live[0].Shards) == 2 &&
				len(live[1].Shards) == 2 &&
				min(live[0].Position, live[1].Position) >= g.end
		},
	)
	answered, begun := 0, time.Now()
	for _, community := range []string{"everyone", "german", "group-0", "group-1", "group-2"} {
		g.await("equal answers about "+community, said, func() bool {
			var answers [2]string
			for i, page := range pages {
				response, err := http.Get(
					"http://" + page + "/api/v1/communities/" + community + "/ask?count=5",
				)
				g.must(err)
				body, err := io.ReadAll(response.Body)
				g.must(errors.Join(err, response.Body.Close()))
				if answers[i] = string(body); response.StatusCode == http.StatusOK {
					answered++
				}
			}
			return answers[0] == answers[1]
		})
	}
	if took := time.Since(begun); answered < 2 || took > 10*time.Second { // then shards have moved
		t.Errorf("seed %d: %d answers, alike after %v\n%s", g.seed, answered, took, said)
	}
}

// keepsGraph says whether the group keeps the graph at a position.
func (g *workersRun) keepsGraph(position uint64) bool {
	g.t.Helper()
	objects, err := g.js.ObjectStore(g.t.Context(), "gql_group_g_state")
	g.must(err)
	infos, err := objects.List(g.t.Context())
	g.must(err)
	return slices.ContainsFunc(infos, func(info *jetstream.ObjectInfo) bool {
		return strings.HasSuffix(info.Name, fmt.Sprintf("/%020d/%s", position, group.GraphPart))
	})
}

// await waits until something is true.
func (g *workersRun) await(what string, said *logged, is func() bool) {
	g.t.Helper()
	for begun := time.Now(); !is(); pause(g.t.Context(), 20*time.Millisecond) {
		if time.Since(begun) > groupWaitMax {
			g.t.Fatalf("seed %d: waited %v for %s\n%s", g.seed, groupWaitMax, what, said)
		}
	}
}

// flipBit changes one bit of the newest checkpoint, in the name of a vertex, which then is another
// one to this worker.
func (g *workersRun) flipBit(path string) {
	g.t.Helper()
	dir, err := checkpoint.Open(checkpoint.Disk{}, path)
	g.must(err)
	c, err := dir.Load(func(error) {})
	g.must(err)
	at := bytes.Index(c.Sections["vertices.arrow"], []byte("somebody"))
	if at < 0 {
		g.t.Fatalf("seed %d: there is no vertex somebody", g.seed)
	}
	c.Sections["vertices.arrow"][at] ^= 's' ^ 'S'
	other := checkpoint.New(c.Manifest)
	for name, data := range c.Sections {
		other.Add(name, data)
	}
	err = dir.DropBefore(c.Manifest.Position + 1)
	g.must(err)
	_, err = dir.Save(other)
	g.must(err)
}
