package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
)

// reloading is a live run whose settings the test changes.
type reloading struct {
	*history
	p     *pipeline
	said  *logged
	next  fileConfig
	err   error // that the settings cannot be read
	ended chan error
}

func startReloading(ctx context.Context, t *testing.T, settings fileConfig, seed uint64) *reloading {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 51))
	r := &reloading{
		history: &history{t: t, rand: random, dir: settings.State, events: &crashEvents{rand: random}},
		said:    &logged{}, next: settings, ended: make(chan error, 1),
	}
	var err error
	r.p, err = openPipeline(ctx, settings, pipelineOptions{log: slog.New(slog.NewTextHandler(r.said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r.p.reload = &reloader{signals: make(chan os.Signal, 1), read: func() (fileConfig, error) { return r.next, r.err }}
	go func() { r.ended <- r.p.run(ctx) }()
	return r
}

// change tells the run to reload, while events come, and waits for what it says.
func (r *reloading) change(ctx context.Context, settings fileConfig, want string) {
	r.t.Helper()
	r.next = settings
	r.send(r.p.broker, 20)
	before := strings.Count(r.said.String(), want)
	r.p.reload.signals <- syscall.SIGHUP
	for deadline := time.Now().Add(crashStartMax); strings.Count(r.said.String(), want) == before; {
		if time.Now().After(deadline) {
			r.t.Fatalf("no %q in\n%s", want, r.said)
		}
		pause(ctx, time.Millisecond)
	}
	r.send(r.p.broker, 20)
}

// end stops the run after a step, and gives the sinks what waits.
func (r *reloading) end(ctx context.Context, cancel func()) {
	r.t.Helper()
	r.p.reload.read = func() (fileConfig, error) {
		cancel()
		return r.next, errors.New("the end")
	}
	r.p.reload.signals <- syscall.SIGHUP
	if err := <-r.ended; !errors.Is(err, context.Canceled) {
		r.t.Fatalf("the run ended by itself: %v\n%s", err, r.said)
	}
	if err := r.p.flushQueues(ctx); err != nil {
		r.t.Error(err)
	}
	if err := r.p.close(); err != nil {
		r.t.Error(err)
	}
}

// Outputs of every kind must be reloaded while events come, each record being in one
// of the places of its kind, once; settings of which one cannot be taken over must
// change nothing, neither what was there before it nor after.
func TestOutputsAreReloaded(t *testing.T) {
	config := filepath.Join(t.TempDir(), "gqlstream.yaml")
	if err := os.WriteFile(config, []byte(strings.Replace(crashConfig, "every: 300ms", "every: 24h", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := loadConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	in := func(name string) string { return filepath.Join(out, name) }
	first.State = t.TempDir()
	first.Output.Arrow, first.Output.Alerts, first.Output.File = in("arrow1"), in("alerts1"), in("file1")
	running, cancel := context.WithCancel(t.Context())
	r := startReloading(running, t, first, 1)
	second := first
	second.Output.Arrow, second.Output.Alerts, second.Output.File = in("arrow2"), in("alerts2"), ""
	second.Output.Parquet = in("parquet")
	r.change(running, second, `changed="output.file, output.parquet, output.arrow, output.alerts"`)
	for _, bad := range []func(*outputConfig){
		func(o *outputConfig) { o.Alerts = "/nowhere/alerts" },
		func(o *outputConfig) { o.File, o.Arrow, o.Alerts = in("file2"), in("arrow3"), "/nowhere/alerts" },
		func(o *outputConfig) { o.File, o.Parquet = in("file2"), "/dev/null/parquet" },
	} {
		third := second
		bad(&third.Output)
		r.change(running, third, "is not reloaded")
	}
	fourth := second
	fourth.Output.Every = 23 * time.Hour
	r.change(running, fourth, `changed=output.every`)
	r.end(t.Context(), cancel)

	withBroker(t, first.State, func(js jetstream.JetStream) {
		c := &crashRun{t: t}
		var estimates, alerts []string
		keep := func(list *[]string) func(*jetstream.RawStreamMsg) {
			return func(m *jetstream.RawStreamMsg) {
				var record struct{ Position uint64 }
				if err := json.Unmarshal(m.Data, &record); err != nil {
					t.Error(err)
				}
				if record.Position <= r.p.through { // a step that the end cut short comes again
					*list = append(*list, string(m.Data))
				}
			}
		}
		c.eachMessage(js, ingest.DefaultStreamNames().Estimates, keep(&estimates))
		c.eachMessage(js, ingest.DefaultStreamNames().Alerts, keep(&alerts))
		const tail = "_tail.ndjson"
		sameRecords(t, "arrow", estimates, in("arrow1/"+tail), in("arrow2/"+tail), in("arrow3/"+tail))
		sameRecords(t, "alerts", alerts, in("alerts1"), in("alerts2"))
		for _, beginning := range []string{in("file1"), in("file2")} {
			if data, err := os.ReadFile(beginning); beginning == in("file1") && (err != nil || len(data) == 0) {
				t.Errorf("%s: %d bytes, %v", beginning, len(data), err)
			} else if beginning == in("file2") && len(data) > 0 {
				t.Errorf("%s of settings that were refused has %d bytes", beginning, len(data))
			}
		}
		if data, err := os.ReadFile(in("parquet/" + tail)); err != nil || !strings.Contains(string(data), "community") {
			t.Errorf("parquet: %q, %v", data, err)
		}
	})
}

// sameRecords checks that the records of files are those wanted, each once.
func sameRecords(t *testing.T, what string, want []string, files ...string) {
	t.Helper()
	var got, each []string
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, `"position"`) {
				got, n = append(got, strings.TrimSuffix(line, "\n")), n+1
			}
		}
		each = append(each, fmt.Sprint(filepath.Base(filepath.Dir(name)), "/", filepath.Base(name), ": ", n))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("%s: %d lines, want %d: %v", what, len(got), len(want), each)
	}
	t.Logf("%s: %d lines, %v", what, len(got), each)
}
