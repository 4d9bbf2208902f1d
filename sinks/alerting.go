package sinks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/sinks/alerts"
)

// AlertingConfig configures the follower that makes alerts from the output log.
type AlertingConfig struct {
	JS      jetstream.JetStream
	Streams StreamsConfig
	Shards  int
	Log     string     // identity of the input log
	State   StateStore // keeps the state
	Rules   alerts.Config
}

// Alerting is a follower that evaluates the rules and stores the beginnings and ends of alerts in
// the stream of alerts, each exactly once: its state is a function of the output log and is saved
// with the cursor, and transitions that a restart evaluates again are not stored again. Changed
// rules apply after the newest stored alert. Any goroutine may call Now.
type Alerting struct {
	config  AlertingConfig
	begin   Cursor // where there is no state
	standby bool   // another worker of a group stores and saves

	mu     sync.Mutex
	engine *alerts.Engine
	rules  *alerts.Config // to be set when old ground is over; nil: they are

	stored placedStream
	taken  Cursor // of the last emission that was evaluated
}

// NewAlerting returns alerts that continue from their saved state. Without a state they begin with
// the next published record.
func NewAlerting(ctx context.Context, c AlertingConfig) (*Alerting, error) {
	a := &Alerting{
		config: c,
		stored: placedStream{js: c.JS, name: c.Streams.Names.Alerts, log: c.Log},
	}
	var err error
	if a.engine, err = alerts.New(c.Rules); err != nil {
		return nil, err
	}
	_, unread := c.State.Read(ctx)
	if unread == nil {
		return a, nil
	}
	a.begin, err = Newest(ctx, c.JS,
		ReaderConfig{Names: c.Streams.Names, Shards: c.Shards, Log: c.Log})
	if err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	if errors.Is(unread, os.ErrNotExist) { // else Open learns whether there is one
		_ = a.save(ctx,
			// Open tries again; a run may end before it, and the next one must begin here too
			a.begin)
	}
	return a, nil
}

// SetStandby leaves storing and saving to another worker of a group, or not. It must not be called
// while the alerts follow.
func (a *Alerting) SetStandby(standby bool) { a.standby = standby }

// Open opens the follower, as a FollowConfig wants it.
func (a *Alerting) Open(ctx context.Context) (Follower, Cursor, error) {
	if _, err := ensureStream(ctx, a.config.JS, a.config.Streams.alerts()); err != nil {
		return nil, Cursor{}, err
	}
	if err := a.stored.open(ctx); err != nil {
		return nil, Cursor{}, err
	}
	p, err := readState(ctx, a.config.State, a.config.Log)
	switch {
	case errors.Is(err, os.ErrNotExist):
		p = progress{Log: a.config.Log, Cursor: a.begin}
	case err != nil:
		return nil, Cursor{}, err
	}
	if failed := a.restore(p); failed != nil {
		return nil, Cursor{}, failed
	}
	if a.taken = p.Cursor; !a.standby ||
		err != nil { // a worker that stands by saves where it begins, so that all begin there
		err = a.save(ctx, p.Cursor)
	}
	return a, p.Cursor, err
}

// restore makes the engine that the state describes, under the rules that held then.
func (a *Alerting) restore(p progress) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rules = nil
	if p.State == nil {
		a.engine, err = alerts.New(a.config.Rules)
		return err
	}
	if a.engine, err = alerts.Restore(a.config.Rules, p.State); err != nil {
		return fmt.Errorf("%s: %w: %w", a.config.State, err, ErrNotOurs)
	}
	a.rules = &a.config.Rules
	return nil
}

// Take implements Follower.
func (a *Alerting) Take(ctx context.Context, e *Stored) error {
	transitions, err := a.evaluate(ctx, e)
	if err == nil && len(transitions) > 0 && !a.standby {
		err = a.store(ctx, e.Cursor.Digest, transitions)
	}
	if err == nil {
		a.taken = e.Cursor
	}
	return err
}

// store appends the transitions of one position, as far as they are not there.
func (a *Alerting) store(
	ctx context.Context,
	digest string,
	transitions []alerts.Transition,
) error {
	messages := make([]*nats.Msg, len(transitions))
	for i := range transitions {
		t := &transitions[i]
		messages[i] = &nats.Msg{
			Subject: a.config.Streams.Names.AlertSubject(t.Rule, t.Community),
			Data:    t.JSON(),
		}
	}
	return a.stored.append(ctx, transitions[0].Position, digest, messages)
}

func (a *Alerting) evaluate(ctx context.Context, e *Stored) ([]alerts.Transition, error) {
	estimates, err := e.Estimates()
	if err == nil && a.rules != nil && e.Position > a.stored.last.Position {
		err = a.configure(ctx)
	}
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	moment := alerts.Moment{Position: e.Position, Time: e.Time, Notes: e.Notes}
	return a.engine.Evaluate(moment, estimates), nil
}

// configure puts the new rules in force and saves the state at once. A restart must find
// them in force from the same emission on, because later transitions in the stream follow them.
func (a *Alerting) configure(ctx context.Context) error {
	a.mu.Lock()
	err := a.engine.Configure(*a.rules)
	a.mu.Unlock()
	if err == nil && !a.standby {
		err = a.save(ctx, a.taken)
	}
	if err == nil {
		a.rules = nil
	}
	return err
}

// Sync implements Follower.
func (a *Alerting) Sync(ctx context.Context, taken Cursor) (Cursor, error) {
	if a.standby {
		return taken, nil
	}
	return taken, a.save(ctx, taken)
}

// save writes the state as it is after the cursor.
func (a *Alerting) save(ctx context.Context, after Cursor) error {
	a.mu.Lock()
	state := a.engine.Save()
	a.mu.Unlock()
	return writeState(ctx, a.config.State, progress{Log: a.config.Log, Cursor: after, State: state})
}

// Newest returns the place of the newest alert of this log that is stored. The caller knows that
// the follower has taken all that is published.
func (a *Alerting) Newest() Place { return a.stored.last }

// Close implements Follower. Alerts can be opened again.
func (a *Alerting) Close() error { return nil }

// Now returns the alerts that are pending or firing, the numbers of each rule by state and why
// others are silent, and how many there was no room for; see alerts.Engine.
func (a *Alerting) Now() (active []alerts.Alert, counts []alerts.Counts, dropped uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.engine.Active(), a.engine.Counts(), a.engine.Dropped
}

// Ended returns the ends of the last minutes; see alerts.Engine. It is called after Now.
func (a *Alerting) Ended() []alerts.Transition {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.engine.Ended()
}

// Quietings returns the silences and acknowledgements in force; see alerts.Engine.
func (a *Alerting) Quietings() []alerts.Quieting {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.engine.Quietings()
}
