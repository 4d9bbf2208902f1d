package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
)

// Outcomes of an attempt.
const (
	outcomeDelivered = "delivered"
	outcomeFailed    = "failed"  // it will be retried
	outcomeDropped   = "dropped" // after Webhook.RetryFor
	outcomeSkipped   = "skipped" // older than Webhook.MaxAge
)

// Limits of Close.
const (
	closeWaitMax   = 5 * time.Second // for pending deliveries
	closeTellMin   = time.Second     // of closeWaitMax, for Alertmanagers, which come last
	closeLookEvery = 50 * time.Millisecond
)

// target is the part that webhooks and Alertmanagers share. Any goroutine may read its figures.
type target struct {
	name   string // webhook/NAME or alertmanager/NAME
	link   string // Config.Link
	client *http.Client
	log    *slog.Logger

	mu       sync.Mutex
	outcomes map[string]uint64
	last     string // error of the last attempt; empty after a success
	pauses   bool   // the last attempt will be repeated
	broken   string // why the queue cannot be read; empty: it can
	depth    atomic.Uint64
}

func (t *target) count(outcome string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outcomes == nil {
		t.outcomes = map[string]uint64{}
	}
	t.outcomes[outcome]++
	t.last, t.pauses = "", outcome == outcomeFailed
	if err != nil {
		t.last = err.Error()
	}
}

// reads records whether the queue can be read, and reports whether that has changed.
func (t *target) reads(err error) bool {
	text := ""
	if err != nil {
		text = "the queue cannot be read: " + err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.broken
	t.broken = text
	return text != before
}

// Stats are the figures of one target.
type Stats struct {
	Name     string            `json:"name"` // webhook/NAME or alertmanager/NAME
	Outcomes map[string]uint64 `json:"outcomes"`
	Queue    uint64            `json:"queue"` // waiting transitions, or posted alerts
	// of the last attempt, or why there was none; empty after a success
	Error string `json:"error"`
}

func (t *target) stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Stats{
		Name:     t.name,
		Outcomes: map[string]uint64{},
		Queue:    t.depth.Load(),
		Error:    cmp.Or(t.broken, t.last),
	}
	maps.Copy(s.Outcomes, t.outcomes)
	return s
}

// Targets delivers alerts to all configured targets. Set, Stats and Close may be called from
// one goroutine, which need not be the one that called Start.
type Targets struct {
	hooks    []*hook
	managers []*manager
	all      []*target // hooks before managers
	cancel   context.CancelFunc
	wait     sync.WaitGroup
}

// Start starts delivering: each webhook continues at its place in the stream of alerts, and
// Alertmanagers get the lists of Set.
func Start(
	ctx context.Context, js jetstream.JetStream, streamName string, c Config, log *slog.Logger,
) (*Targets, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, streamName)
	if err != nil {
		return nil, fmt.Errorf("notify: stream %s: %w", streamName, err)
	}
	t := &Targets{}
	if t.hooks, t.managers, err = c.make(log); err != nil {
		return nil, err
	}
	for _, h := range t.hooks {
		h.stream, h.seen = stream, stream.CachedInfo().TimeStamp
		if err := h.open(ctx); err != nil {
			return nil, err
		}
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel = cancel
	for _, h := range t.hooks {
		t.all = append(t.all, &h.target)
		t.wait.Go(func() { h.run(running) })
	}
	for _, m := range t.managers {
		t.all = append(t.all, &m.target)
		t.wait.Go(func() { m.run(running) })
	}
	return t, nil
}

// make makes the targets, with their secrets, without contacting them.
func (c Config) make(log *slog.Logger) (hooks []*hook, managers []*manager, err error) {
	for _, m := range c.Alertmanagers {
		opened, err := openManager(m, c.Link, log)
		if err != nil {
			return nil, nil, err
		}
		managers = append(managers, opened)
	}
	for _, w := range c.Webhooks {
		h, err := newHook(w, c.Link, log)
		if err != nil {
			return nil, nil, err
		}
		hooks = append(hooks, h)
	}
	return hooks, managers, nil
}

// ValidateFiles reports files with secrets that cannot be used.
func (c Config) ValidateFiles() error {
	_, _, err := c.make(slog.New(slog.DiscardHandler))
	return err
}

// Set replaces the lists of firing and of recently ended alerts. It never blocks.
func (t *Targets) Set(active []alerts.Alert, ended []alerts.Transition) {
	for _, m := range t.managers {
		m.set(active, ended, time.Now())
	}
}

// Stats returns the figures of every target.
func (t *Targets) Stats() (out []Stats) {
	for _, one := range t.all {
		out = append(out, one.stats())
	}
	return out
}

// Stop ends the targets at once. Undelivered transitions of a webhook stay in its queue.
func (t *Targets) Stop() {
	t.cancel()
	t.wait.Wait()
	for _, one := range t.all {
		one.client.CloseIdleConnections()
	}
}

// Close gives working targets up to five seconds to deliver pending transitions, and ends them all.
func (t *Targets) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWaitMax)
	defer cancel()
	hooks, end := context.WithTimeout(ctx, closeWaitMax-closeTellMin)
	defer end()
	for slices.ContainsFunc(t.hooks, func(h *hook) bool { return h.delivers(hooks) }) {
		_ = request.Pause(hooks, closeLookEvery) // when ctx ends the pause ends
	}
	t.Stop()
	for _, m := range t.managers {
		_ = m.post(ctx) // post counts the outcome
		m.client.CloseIdleConnections()
	}
	return nil
}

// delivers reports whether a webhook is still delivering: there is more in its queue, and it is not
// pausing before a retry.
func (h *hook) delivers(ctx context.Context) bool {
	h.mu.Lock()
	pauses := h.pauses
	h.mu.Unlock()
	queue, err := h.stream.Consumer(ctx, consumerName(h.config.Name))
	return err == nil && !pauses &&
		queue.CachedInfo().NumPending+uint64(queue.CachedInfo().NumAckPending) > 0
}

// consumerName returns a valid consumer name for a webhook.
func consumerName(webhook string) string { return "webhook-" + sinks.Token(webhook) }

// sampleAlert is the transition of a trial: its rule, community and class cannot be mistaken for
// real ones.
func sampleAlert(at time.Time) alerts.Transition {
	text := at.UTC().Format(time.RFC3339Nano)
	return alerts.Transition{
		ID:        "trial-" + text,
		Alert:     "gqlstream-trial",
		Rule:      "gqlstream-trial",
		Community: "trial",
		Class:     "trial",
		State:     alerts.Firing,
		Time:      text,
		Since:     text,
		Reason:    "this is a trial of gqlstream; no community is concerned",
		Text:      "this is a trial of gqlstream; no community is concerned",
		Point:     0.5,
		Low:       0.4,
		High:      0.6,
	}
}

// Outcome is the answer of one target to a trial.
type Outcome struct {
	Name string // webhook/NAME or alertmanager/NAME
	Err  error  // nil: it was accepted
}

// Trial sends a sample to every target, also against its rules, and returns the outcomes.
// Alertmanager gets an alert that ends by itself.
func Trial(ctx context.Context, c Config) ([]Outcome, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	now := time.Now()
	sample := sampleAlert(now)
	var out []Outcome
	for _, w := range c.Webhooks {
		h, err := newHook(w, c.Link, slog.New(slog.DiscardHandler))
		if err == nil {
			data, _ := json.Marshal(sample) // plain fields cannot fail
			err = h.send(ctx, &sample, now, data)
			h.client.CloseIdleConnections()
		}
		out = append(out, Outcome{"webhook/" + w.Name, err})
	}
	for _, m := range c.Alertmanagers {
		m.Rules = nil
		opened, err := openManager(m, c.Link, slog.New(slog.DiscardHandler))
		if err == nil {
			opened.set([]alerts.Alert{{Transition: sample, Now: sample.Text}}, nil, now)
			err = opened.post(ctx)
			opened.client.CloseIdleConnections()
		}
		out = append(out, Outcome{"alertmanager/" + m.Name, err})
	}
	return out, nil
}
