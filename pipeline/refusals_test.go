package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
)

// refusing is a run with a server that can be made to refuse entries of the quarantine.
type refusing struct {
	t        *testing.T
	ctx      context.Context
	settings config.Settings
	said     sayings
	p        *Pipeline
	end      func()
	want     []string // refused events, in order
}

func newRefusing(t *testing.T) *refusing {
	t.Helper()
	settings := settingsOfServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r := &refusing{t: t, ctx: ctx, settings: settings}
	r.start()
	return r
}

// start opens and runs a pipeline until end is called. end abandons any work that the loop has not
// waited for.
func (r *refusing) start() {
	p, err := Open(
		r.t.Context(),
		r.settings,
		Options{Log: slog.New(slog.NewTextHandler(&r.said, nil))},
	)
	r.must(err)
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	r.p, r.end = p, func() {
		cancel()
		<-ended
		r.must(p.Close())
	}
}

func (r *refusing) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%v\n%s", err, &r.said)
	}
}

// await waits until something is so.
func (r *refusing) await(what string, so func() bool) {
	r.t.Helper()
	for !so() {
		if request.Pause(r.ctx, 10*time.Millisecond) != nil {
			r.t.Fatalf("never %s\n%s", what, &r.said)
		}
	}
}

// stall makes the quarantine take nothing, as a full one does that keeps its oldest, or all again.
func (r *refusing) stall(stalled bool) {
	r.t.Helper()
	c := broker.QuarantineConfig(r.p.names.In.Quarantine)
	if stalled {
		c.Discard, c.MaxMsgs = jetstream.DiscardNew, int64(len(r.entries()))
	}
	_, err := r.p.Broker.JS.UpdateStream(r.t.Context(), c)
	r.must(err)
}

// refused publishes a message of events that are refused by the decoder, one that only the graph
// can refuse, and one that ends the step. It returns the position of this one.
func (r *refusing) refused(events int, control string) uint64 {
	r.t.Helper()
	at := r.publish("edge", strings.Repeat("{}\n", events))
	for i := range events {
		r.want = append(r.want, fmt.Sprintf("%d.%d {}", at, i))
	}
	own := fmt.Sprintf(`{"community":"all","vertex":%d`, at)
	at = r.publish("member", own+"}")
	r.want = append(r.want, fmt.Sprintf("%d.0 %s", at, own))
	return r.publish("control", fmt.Sprintf(`{"op":%q}`, control))
}

func (r *refusing) publish(kind, text string) uint64 {
	r.t.Helper()
	ack, err := r.p.Broker.JS.Publish(r.t.Context(), "gql."+kind, []byte(text))
	r.must(err)
	return ack.Sequence
}

func (r *refusing) entries() (list []string) {
	r.t.Helper()
	q, err := ingest.OpenQuarantine(r.t.Context(), r.p.Broker.JS, r.p.names.In)
	r.must(err)
	r.must(q.List(r.t.Context(), ingest.QuarantineFilter{}, func(e ingest.QuarantineEntry) error {
		original, _, _ := strings.Cut(string(e.Original), `,"time"`) // of the message
		list = append(list, fmt.Sprintf("%d.%d %s", e.Position, e.Index, original))
		return nil
	}))
	return list
}

func (r *refusing) compare(when string) {
	r.t.Helper()
	if got := r.entries(); !slices.Equal(got, r.want) {
		r.t.Fatalf(
			"%s: %d entries, want %d:\n%.300q\n%.300q\n%s", when, len(got), len(r.want), got,
			r.want, &r.said,
		)
	}
}

func (r *refusing) applied(at uint64) func() bool {
	return func() bool { return uint64(r.p.Position()) >= at }
}

func (r *refusing) held() bool { return r.p.quarantine.State().Condition == request.Holding }

func (r *refusing) saved(at uint64) bool {
	r.t.Helper()
	list, err := checkpoint.Look(checkpoint.Disk{}, checkpointsIn(r.settings.State)).List()
	r.must(err)
	return slices.Contains(list, at)
}

// While the quarantine takes nothing, estimates must go on; a checkpoint must wait for the refusals
// before it, and a run that ends meanwhile and starts again must lose and repeat none.
func TestAStalledQuarantineHoldsNoEstimateUp(t *testing.T) {
	r := newRefusing(t)
	before := r.refused(3, "checkpoint")
	r.await("saved", func() bool { return r.saved(before) })
	r.compare("before")

	r.stall(true)
	for range 5 {
		r.await("applied beside a quarantine that is stalled", r.applied(r.refused(10, "flush")))
	}
	r.await(
		"said that it fails",
		func() bool { return r.p.quarantine.State().Condition == request.Retrying },
	)
	if n := len(r.entries()); n != 4 {
		t.Fatalf("%d entries in a quarantine that is stalled", n)
	}

	r.end()
	r.start()
	r.await("applied again", r.applied(r.refused(10, "flush")))
	at := r.refused(10, "checkpoint")
	r.await("held by a checkpoint", r.held)
	if time.Sleep(100 * time.Millisecond); r.saved(at) {
		t.Error("a checkpoint is there before the refusals that it has passed")
	}
	r.stall(false)
	r.await("saved", func() bool { return r.saved(at) })
	r.compare("with the checkpoint")
	r.end()
}

// The refusals that wait for the quarantine must be bounded. If there are more, the run must pause
// until all of them are stored.
func TestRefusalsThatWaitAreBounded(t *testing.T) {
	r := newRefusing(t)
	r.await("stored", r.applied(r.refused(1, "checkpoint")))
	r.stall(true)
	for range 10 {
		r.await("applied", r.applied(r.refused(90, "flush")))
	}
	var last uint64
	for range 12 {
		last = r.refused(90, "flush")
	}
	r.await("held", r.held)
	if time.Sleep(100 * time.Millisecond); uint64(r.p.Position()) >= last {
		t.Error("the run goes on with more refusals than a batch holds")
	}
	r.stall(false)
	r.await("applied at last", r.applied(last))
	r.await("stored", func() bool { return len(r.entries()) >= len(r.want) })
	r.compare("at last")
	r.end()
}
