package pipeline

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/pipeline/config"
	"gqlstream/sinks/web"
)

// Pipeline joins the input log, its fold, the output log and its followers. The main fold's
// goroutine owns the checkpoints and the counts.
type Pipeline struct {
	*base
	*output
	opener      *opener
	folds       *folds
	ticker      *ingest.Ticker // nil if none is needed
	followers   *followers
	alerting    *alerting
	Page        *web.Server
	Taken       string // configured address of the page, if another program has it
	Checkpoints *checkpoints
	conditions  *conditions
	observed    *observed
	reload      *reloader // nil: the configuration is not read again
	definitions definitions
	status      shownStatus
	tracer      *Tracer
	opened      *closers
}

// logEnd asks the broker for the last position of the log.
func (in *input) logEnd(ctx context.Context) uint64 {
	ctx, cancel := context.WithTimeout(ctx, statusEvery)
	defer cancel()
	stream, err := in.Broker.JS.Stream(ctx, in.names.In.Log)
	if err != nil {
		return 0
	}
	return stream.CachedInfo().State.LastSeq
}

// Position returns the last position of the log that was applied.
func (p *Pipeline) Position() event.Position {
	return event.Position(p.folds.main.Load().applied.Load())
}

// OpenLog opens the log named by the settings.
func OpenLog(
	ctx context.Context, js jetstream.JetStream, settings *config.Settings,
	c ingest.JetStreamConfig,
) (*ingest.JetStreamSource, error) {
	decoder, err := wire.NewDecoder(settings.Classes.ClassSet())
	if err != nil {
		return nil, config.Usage(err)
	}
	in, _, err := settings.Names()
	if err != nil {
		return nil, err
	}
	c.Stream = in.Log
	return ingest.OpenJetStream(ctx, js, decoder, c)
}

// publishEnd publishes the end of a drained log.
func publishEnd(ctx context.Context, js jetstream.JetStream, log string) (event.Position, error) {
	return publishControl(ctx, js, log, event.Flush, event.Checkpoint)
}

// publishControl publishes control events as one message, and returns its position.
func publishControl(
	ctx context.Context, js jetstream.JetStream, log string, ops ...event.Op,
) (event.Position, error) {
	m := nats.NewMsg(broker.Subject(log, event.KindControl))
	m.Header.Set(wire.HeaderContentType, wire.NDJSON)
	for _, op := range ops {
		m.Data = fmt.Appendf(m.Data, `{"op":"%v"}`+"\n", op)
	}
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("publish %v: %w", ops, err)
	}
	return event.Position(ack.Sequence), nil
}

// Close closes everything that Open has opened, last first, and returns the errors.
func (p *Pipeline) Close() error {
	err := p.opened.close()
	if s := &p.status.now; s.Steps > 0 {
		p.log.Info("stopped", "position", p.Position(), "steps", s.Steps, "events", sum(s.Events),
			"refused", sum(s.Refused), "estimates", p.status.estimates, "late", s.Late)
	}
	return err
}
