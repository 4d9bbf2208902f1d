package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

// pipeline is one source, one core and the sinks.
type pipeline struct {
	settings   fileConfig
	config     incremental.Config
	log        *slog.Logger
	broker     *broker
	source     *ingest.JetStreamSource
	ticker     *ingest.Ticker
	core       *incremental.Core
	quarantine *ingest.QuarantineWriter
	sinks      []sinks.Sink
	closers    []func() error
	stats      runStats
}

// pipelineOptions are what a caller decides besides the settings.
type pipelineOptions struct {
	drain bool // end after what the stream holds now
	out   io.Writer
	log   *slog.Logger
	extra []sinks.Sink // further sinks, the caller's to close
}

// runStats are what run counts for its closing line.
type runStats struct {
	steps, events, refused, estimates uint64
	position                          event.Position
}

// openPipeline connects, checks the streams and builds everything that run needs.
func openPipeline(ctx context.Context, settings fileConfig, o pipelineOptions) (p *pipeline, err error) {
	p = &pipeline{settings: settings, log: o.log}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
			p = nil
		}
	}()
	if p.config, err = settings.core(); err != nil {
		return p, err
	}
	steps, err := settings.Step.steps()
	if err != nil {
		return p, err
	}
	if p.broker, err = openBroker(settings, o.log); err != nil {
		return p, err
	}
	p.closers = append(p.closers, p.broker.close)
	if err = ingest.EnsureStreams(ctx, p.broker.js, ingest.DefaultStreamNames()); err != nil {
		return p, err
	}
	if p.core, err = incremental.New(p.config); err != nil {
		return p, err
	}
	p.closers = append(p.closers, func() error { p.core.Close(); return nil })
	if err = p.openSinks(ctx, o); err != nil {
		return p, err
	}
	return p, p.openSource(ctx, steps, o.drain)
}

// openSource begins to read the log. A drained log gets a flush first, so that
// the end of the run stands in the log and a replay ends the same way.
func (p *pipeline) openSource(ctx context.Context, steps ingest.StepConfig, drain bool) error {
	decoder, err := event.NewDecoder(event.Config{Classes: p.settings.Classes.set()})
	if err != nil {
		return usageError{err}
	}
	if drain {
		if err := flushLog(ctx, p.broker.js); err != nil {
			return err
		}
	}
	p.source, err = ingest.OpenJetStream(ctx, p.broker.js, decoder, ingest.JetStreamConfig{
		Step: steps, UntilLast: drain,
	})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, p.source.Close)
	if drain || steps.Time == ingest.EventTime {
		return nil
	}
	p.ticker, err = ingest.StartTicker(ctx, p.broker.js, ingest.TickerConfig{
		Every: steps.Every, Pending: p.source.Pending,
		Report: func(err error) { p.log.Warn("tick", "error", err) },
	})
	if err == nil {
		p.closers = append(p.closers, func() error { p.ticker.Stop(); return nil })
	}
	return err
}

// flushLog publishes a flush: the step that holds it ends there and emits.
func flushLog(ctx context.Context, js jetstream.JetStream) error {
	m := nats.NewMsg(event.Subject(event.KindControl))
	m.Header.Set(event.HeaderContentType, event.JSON)
	m.Data = []byte(`{"op":"flush"}`)
	if _, err := js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("publish a flush: %w", err)
	}
	return nil
}

func (p *pipeline) openSinks(ctx context.Context, o pipelineOptions) (err error) {
	names := ingest.DefaultStreamNames()
	if p.quarantine, err = ingest.NewQuarantineWriter(ctx, p.broker.nc, names); err != nil {
		return err
	}
	p.closers = append(p.closers, func() error { p.quarantine.Close(); return nil })
	published, err := sinks.NewNATS(p.broker.nc, sinks.NATSConfig{Stream: names.Estimates, Bucket: names.Latest})
	if err != nil {
		return err
	}
	p.sinks = append(p.sinks, published)
	p.closers = append(p.closers, published.Close)
	switch file := p.settings.Output.File; file {
	case "":
	case "-":
		p.sinks = append(p.sinks, sinks.NewLines(o.out))
	default:
		lines, err := sinks.OpenLines(file)
		if err != nil {
			return err
		}
		p.sinks = append(p.sinks, lines)
		p.closers = append(p.closers, lines.Close)
	}
	p.sinks = append(p.sinks, o.extra...)
	return nil
}

// record keeps count after a step.
func (p *pipeline) record(b *event.Batch, result *incremental.Result) {
	p.stats.steps++
	p.stats.events += uint64(b.Events())
	p.stats.refused += uint64(len(b.Refused) + len(result.Refused))
	p.stats.estimates += uint64(len(result.Estimates))
	p.stats.position = result.Position
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
			"refused", p.stats.refused, "estimates", p.stats.estimates)
	}
	return errors.Join(errs...)
}

// greet says what is read, where state is and where estimates go.
func (p *pipeline) greet(w io.Writer) {
	names := ingest.DefaultStreamNames()
	fmt.Fprintf(w, "gqlstream %s\n", version)
	fmt.Fprintf(w, "  reads      stream %s at %s\n", names.Log, p.broker.where)
	fmt.Fprintf(w, "  classes    %s\n", strings.Join(p.settings.Classes, ", "))
	fmt.Fprintf(w, "  tracks     %s\n", p.tracked())
	fmt.Fprintf(w, "  publishes  stream %s, bucket %s%s\n", names.Estimates, names.Latest, p.alsoTo())
	fmt.Fprintf(w, "  refuses to stream %s (gqlstream quarantine list)\n", names.Quarantine)
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

func (p *pipeline) alsoTo() string {
	switch p.settings.Output.File {
	case "":
		return ""
	case "-":
		return ", standard output"
	}
	return ", " + p.settings.Output.File
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
