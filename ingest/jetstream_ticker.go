package ingest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/request"
)

// tickIdle is the time between two ticks of an idle stream, or one step if that is longer.
const tickIdle = time.Second

// TickerConfig configures how often ticks are published.
type TickerConfig struct {
	Stream string // the log; empty: the default name

	Every   time.Duration // while events are pending; 0: the default of StepConfig.Every
	Pending func() bool   // whether events wait for a boundary: JetStreamSource.Pending

	// Secret is set if several processes put ticks into the log. One tick in each span of Every is
	// enough; the broker drops the others by their ids. A producer that knew the next ids could
	// publish messages with them first, and stop the log's time; see TickSecret.
	Secret string
}

// Ticker puts time into the log while it runs, so that the last events before a pause do not wait
// for later ones. Ticks are messages like all others, so a replay sees the same boundaries. A log
// cut by event time needs no ticker: a tick has no event time. If a tick cannot be published, the
// ticker goes on; meanwhile the log's time stands still, and State says so.
type Ticker struct {
	config TickerConfig
	send   func(context.Context) error
	cancel context.CancelFunc
	done   chan struct{}

	tracker request.Tracker
}

// StartTicker publishes ticks until ctx ends or Stop is called.
func StartTicker(ctx context.Context, js jetstream.JetStream, c TickerConfig) *Ticker {
	c.Stream, c.Every = cmp.Or(c.Stream,
		broker.DefaultStreamNames().Log), cmp.Or(c.Every, StepEveryDefault)
	return startTicker(ctx, c, func(ctx context.Context) error {
		ctx, cancel := request.Context(ctx, js.Conn())
		defer cancel()
		m := nats.NewMsg(broker.Subject(c.Stream, event.KindControl))
		m.Header.Set(wire.HeaderContentType, wire.JSON)
		m.Data = []byte(`{"op":"tick"}`)
		if c.Secret != "" {
			slot := time.Now().UnixNano() / int64(c.Every)
			m.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("tick/%s/%d", c.Secret, slot))
		}
		_, err := js.PublishMsg(ctx, m)
		if c.Secret != "" && request.DuplicateInProcess(err) {
			return nil // another worker's tick for this slot is being stored
		}
		return err
	})
}

func startTicker(ctx context.Context, c TickerConfig, send func(context.Context) error) *Ticker {
	ctx, cancel := context.WithCancel(ctx)
	t := &Ticker{config: c, send: send, cancel: cancel, done: make(chan struct{})}
	go t.run(ctx)
	return t
}

// Stop ends the ticker and waits for it.
func (t *Ticker) Stop() {
	t.cancel()
	<-t.done
}

func (t *Ticker) run(ctx context.Context) {
	defer close(t.done)
	ticker := time.NewTicker(t.config.Every)
	defer ticker.Stop()
	idle := max(tickIdle, t.config.Every)
	last := time.Now().Add(-idle) // the first tick is due at once
	for {
		select {
		case now := <-ticker.C:
			if !t.config.Pending() && now.Sub(last) < idle {
				continue
			}
			last = now
			if err := t.send(ctx); err == nil {
				t.tracker.Works()
			} else if ctx.Err() == nil {
				t.tracker.Failed(fmt.Errorf("ticks cannot be published: %w", err), true)
			}
		case <-ctx.Done():
			return
		}
	}
}

// State reports whether the broker takes ticks. Any goroutine may call it.
func (t *Ticker) State() request.State { return t.tracker.State(t.config.Stream) }
