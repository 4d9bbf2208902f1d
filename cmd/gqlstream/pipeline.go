package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// pipeline is one source, one core and the sinks.
type pipeline struct {
	settings   fileConfig // the loop's: a reload replaces them
	begun      fileConfig // the settings at the start, for any goroutine
	config     incremental.Config
	log        *slog.Logger
	broker     *broker
	source     *ingest.JetStreamSource
	ticker     atomic.Pointer[ingest.Ticker] // nil until it is started, and where none is needed
	core       *incremental.Core
	quarantine *ingest.QuarantineWriter
	sinks      []sinks.Sink
	watched    atomic.Pointer[[]stateful] // of the sinks

	logID       string      // of the log that positions count in
	queues      []placed    // of the sinks that are not on the broker
	through     uint64      // nothing with a position up to here is to be published any more
	page        *web.Server // nil when it is turned off
	taken       string      // address that the page was to have, and another program has
	checkpoints *checkpoints
	alerts      *alerting
	reload      *reloader // nil: the configuration is not read again
	closers     []func() error
	stats       runStats
	definitions definitions
}

// pipelineOptions are what a caller decides besides the settings.
type pipelineOptions struct {
	drain bool // end after what the stream holds now
	out   io.Writer
	log   *slog.Logger
	extra []sinks.Sink // further sinks, the caller's to close
	queue []queued     // further sinks behind queues

	freePort bool // for the page, where the one it should have is taken
}

// runStats are what run counts for its closing line.
type runStats struct {
	steps, events, refused, estimates uint64
	position                          event.Position
	byKind, late                      [event.Kinds]uint64
	byReason                          map[event.Reason]uint64
}

// openPipeline connects, checks the streams and builds everything that run needs.
func openPipeline(ctx context.Context, settings fileConfig, o pipelineOptions) (p *pipeline, err error) {
	p = &pipeline{settings: settings, begun: settings, log: o.log, stats: runStats{byReason: map[event.Reason]uint64{}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
			p = nil
		}
	}()
	if p.config, err = settings.core(); err != nil {
		return p, err
	}
	steps, err := settings.steps()
	if err != nil {
		return p, err
	}
	if p.broker, err = openBroker(settings, o.log); err != nil {
		return p, err
	}
	p.closers = append(p.closers, p.broker.close)
	if p.broker.embedded == nil { // which has a lock of its own
		lock, err := ingest.AcquireLock(settings.State)
		if err != nil {
			return p, err
		}
		p.closers = append(p.closers, lock.Release)
	}
	if err = ingest.EnsureStreams(ctx, p.broker.js, ingest.DefaultStreamNames()); err != nil {
		return p, err
	}
	if p.checkpoints, err = openCheckpoints(settings.State); err != nil {
		return p, err
	}
	if err = p.openQueues(ctx, o.queue); err != nil {
		return p, err
	}
	at, identity, err := p.restore(ctx)
	if err != nil {
		return p, err
	}
	p.through = through(at.Position, at.Emitted)
	p.closers = append(p.closers, func() error { p.core.Close(); return nil },
		func() error { return p.checkpoints.finish(p) })
	if err = p.openAlerts(ctx, p.checkpoints.alerts, p.checkpoints.found); err != nil {
		return p, err
	}
	if err = p.openSinks(ctx, o); err != nil {
		return p, err
	}
	err = p.openSource(ctx, ingest.JetStreamConfig{Step: steps, From: at, Identity: identity, UntilLast: o.drain})
	if err != nil {
		return p, err
	}
	return p, p.alerts.history.commit(settings.State)
}

// openSource begins to read the log. A log that is drained gets a flush and a
// checkpoint first, in one message, so that the end of the run stands in the log, a
// replay ends the same way, and the next run starts here.
func (p *pipeline) openSource(ctx context.Context, c ingest.JetStreamConfig) error {
	decoder, err := event.NewDecoder(event.Config{Classes: p.settings.Classes.set()})
	if err != nil {
		return usageError{err}
	}
	if c.UntilLast {
		if err := checkHistory(ctx, p.broker.js, c.Identity); err != nil {
			return err // before anything is published to a log that is not ours
		}
		if c.Until, err = publishControl(ctx, p.broker.js, "flush", "checkpoint"); err != nil {
			return err
		}
	}
	p.source, err = ingest.OpenJetStream(ctx, p.broker.js, decoder, c)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, p.source.Close)
	if c.UntilLast || c.Step.Time == ingest.EventTime {
		return nil
	}
	ticker, err := ingest.StartTicker(ctx, p.broker.js, ingest.TickerConfig{Every: c.Step.Every, Pending: p.source.Pending})
	if err != nil {
		return err
	}
	p.ticker.Store(ticker)
	p.closers = append(p.closers, func() error { ticker.Stop(); return nil })
	return nil
}

// checkHistory checks that the log is the one that was read, or whole if none was.
func checkHistory(ctx context.Context, js jetstream.JetStream, id *ingest.Identity) error {
	if id == nil {
		beginning, err := ingest.IdentityAt(ctx, js, ingest.DefaultStreamNames().Log, 0)
		if err != nil {
			return err
		}
		id = &beginning
	}
	return id.Check(ctx, js)
}

// publishControl publishes control events without further fields as one message
// and returns its position.
func publishControl(ctx context.Context, js jetstream.JetStream, ops ...string) (event.Position, error) {
	m := nats.NewMsg(event.Subject(event.KindControl))
	m.Header.Set(event.HeaderContentType, event.NDJSON)
	for _, op := range ops {
		m.Data = append(m.Data, `{"op":"`+op+"\"}\n"...)
	}
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("publish %s: %w", strings.Join(ops, " and "), err)
	}
	return event.Position(ack.Sequence), nil
}

func (p *pipeline) openSinks(ctx context.Context, o pipelineOptions) (err error) {
	names := ingest.DefaultStreamNames()
	if p.quarantine, err = ingest.NewQuarantineWriter(ctx, p.broker.nc, names); err != nil {
		return err
	}
	p.closers = append(p.closers, func() error { p.quarantine.Close(); return nil })
	config := sinks.NATSConfig{Stream: names.Estimates, Bucket: names.Latest, Log: p.logID}
	published, err := sinks.NewNATS(p.broker.nc, config)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, published.Close)
	latest, err := sinks.NewLatest(p.broker.nc, config)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, latest.Close)
	stored, err := sinks.NewStored(p.broker.nc, config)
	if err != nil {
		return err
	}
	if err := p.mendLatest(ctx, stored, latest); err != nil {
		return err
	}
	p.sinks = append(p.sinks, published, latest)
	if err := p.startQueues(); err != nil {
		return err
	}
	if p.settings.Output.File == "-" {
		p.sinks = append(p.sinks, &printed{lines: sinks.NewLines(o.out)})
	}
	p.sinks = append(p.sinks, o.extra...)
	if err := p.openAlertSinks(ctx, config.Log); err != nil {
		return err
	}
	p.watch() // the page asks them as soon as it is open
	if err := p.openPage(ctx, stored, o.freePort); err != nil {
		return err
	}
	p.watchSinks()
	return nil
}

// logIdentity names the log, for outputs that must not mix two.
func logIdentity(ctx context.Context, js jetstream.JetStream) (string, error) {
	log, err := ingest.IdentityAt(ctx, js, ingest.DefaultStreamNames().Log, 0)
	return log.Created.Format(time.RFC3339Nano), err
}

// record keeps count after a step.
func (p *pipeline) record(b *event.Batch, result *incremental.Result) {
	s := &p.stats
	s.steps++
	s.events += uint64(b.Events())
	s.estimates += uint64(len(result.Estimates))
	s.position = result.Position
	for kind, n := range [event.Kinds]int{
		event.KindEdge: len(b.Edges), event.KindLabel: len(b.Labels), event.KindPrediction: len(b.Predictions),
		event.KindMember: len(b.Members), event.KindVertex: len(b.Vertices), event.KindControl: len(b.Controls),
	} {
		s.byKind[kind] += uint64(n)
		s.late[kind] += uint64(b.Late[kind])
	}
	for _, refused := range [][]event.Refusal{b.Refused, result.Refused} {
		s.refused += uint64(len(refused))
		for _, r := range refused {
			s.byReason[r.Reason]++
		}
	}
}

// lateByKind lists how many events came late, kind by kind, for the log line.
func (s *runStats) lateByKind() (list []any) {
	for kind, n := range s.late {
		if n > 0 {
			list = append(list, event.Kind(kind).String(), n)
		}
	}
	return list
}

// close undoes openPipeline, last first, and reports what went wrong on the way.
func (p *pipeline) close() error {
	var errs []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	p.closers = nil
	if p.stats.steps > 0 {
		p.log.Info("stopped", "position", p.stats.position, "steps", p.stats.steps, "events", p.stats.events,
			"refused", p.stats.refused, "estimates", p.stats.estimates, slog.Group("late", p.stats.lateByKind()...))
	}
	return errors.Join(errs...)
}

// greet says what is read, where state is and where estimates go.
func (p *pipeline) greet(w io.Writer) {
	names := ingest.DefaultStreamNames()
	fmt.Fprintf(w, "gqlstream %s\n", version)
	fmt.Fprintf(w, "  reads      stream %s at %s\n", names.Log, p.broker.where)
	fmt.Fprintf(w, "  state      %s, %s\n", p.settings.State, p.begins())
	fmt.Fprintf(w, "  classes    %s\n", strings.Join(p.settings.Classes, ", "))
	fmt.Fprintf(w, "  tracks     %s\n", p.tracked())
	fmt.Fprintf(w, "  publishes  stream %s, bucket %s%s\n", names.Estimates, names.Latest, p.settings.Output.alsoTo())
	if p.page != nil {
		fmt.Fprintf(w, "  page       %s\n", p.page.URL())
	}
	fmt.Fprintf(w, "  refuses to stream %s (%s)\n", names.Quarantine, p.quarantineCommand())
}

// quarantineCommand is how to look at what was refused.
func (p *pipeline) quarantineCommand() string {
	const command = "gqlstream quarantine list"
	switch url := p.settings.NATS.URL; {
	case strings.Contains(url, "@"): // with a password
		return command + " --nats URL"
	case url != "":
		return command + " --nats " + url
	case p.broker.embedded.URL() != "":
		return command + " --nats " + p.broker.embedded.URL()
	}
	return command + " --state " + p.settings.State + ", when this has ended"
}

// begins says where in the log the run begins.
func (p *pipeline) begins() string {
	if at := p.core.Position(); at > 0 {
		return fmt.Sprintf("from the checkpoint at position %d", at)
	}
	return "from the beginning of the log"
}

func (p *pipeline) tracked() string {
	if len(p.config.Communities) == 0 {
		return "communities named in member events"
	}
	var list []string
	for _, rule := range p.config.Communities {
		list = append(list, rule.Name)
	}
	return strings.Join(list, ", ") + ", and communities named in member events"
}

// broker is the NATS server in use, this process's own or another.
type broker struct {
	embedded *ingest.Embedded
	nc       *nats.Conn
	js       jetstream.JetStream
	where    string
}

// openBroker connects to the server that the settings name, or starts one.
func openBroker(settings fileConfig, log *slog.Logger) (*broker, error) {
	b := &broker{}
	var err error
	if settings.NATS.URL != "" {
		b.where = "an outside server"
		b.nc, err = ingest.Connect(ingest.ConnectConfig{
			URL: settings.NATS.URL, Credentials: settings.NATS.Credentials, Log: log,
		})
	} else {
		b.embedded, err = ingest.StartEmbedded(ingest.EmbeddedConfig{
			Dir: settings.State, Listen: settings.NATS.Listen, Log: log,
		})
		if err == nil {
			b.where = "the embedded server in " + settings.State
			if url := b.embedded.URL(); url != "" {
				b.where += ", open at " + url
			}
			b.nc, err = b.embedded.Connect()
		}
	}
	if err == nil {
		b.js, err = jetstream.New(b.nc)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *broker) close() error {
	if b.nc != nil {
		b.nc.Close()
	}
	if b.embedded != nil {
		return b.embedded.Close()
	}
	return nil
}
