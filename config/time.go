package config

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

// Late decides which events are late, and the kinds of which late ones are refused: edges, labels,
// predictions, members. Those of other kinds apply and are counted.
type Late struct {
	After  time.Duration `yaml:"after"` // 0: no event is late
	Ahead  time.Duration `yaml:"ahead"` // of an event's time before its message's; 0: an hour; < 0: any
	Divert []string      `yaml:"divert"`
}

// Policy returns the policy; whether it makes sense is the core's to say.
func (c *Late) Policy() (event.LatePolicy, error) {
	p := event.LatePolicy{After: c.After}
	kinds := map[string]*bool{
		"edges":       &p.Edges,
		"labels":      &p.Labels,
		"predictions": &p.Predictions,
		"posts":       &p.Posts,
		"members":     &p.Members,
	}
	for _, kind := range c.Divert {
		refused, ok := kinds[kind]
		if !ok {
			return p, fmt.Errorf(
				"late.divert: %q is none of edges, labels, predictions, posts, members",
				kind,
			)
		}
		*refused = true
	}
	return p, nil
}

// Control lists the control events that are allowed.
type Control struct {
	Configure string `yaml:"configure"` // allow, the default, or deny
}

// Steps returns the cutting of the log into steps, and the policy for late events.
func (c *Settings) Steps() (ingest.StepConfig, error) {
	s := c.Step
	late, err := c.Late.Policy()
	out := ingest.StepConfig{
		Every:     s.Every,
		EmitEvery: s.EmitEvery,
		Ahead:     c.Late.Ahead,
		Late:      late,
	}
	switch {
	case s.Every < 0:
		err = errors.Join(err, fmt.Errorf("step.every: %v is negative", s.Every))
	case s.Time == "event":
		out.Time = ingest.EventTime
	case s.Time != "" && s.Time != "received":
		err = errors.Join(err, fmt.Errorf("step.time: %q is neither received nor event", s.Time))
	}
	if err != nil {
		err = Usage(err)
	}
	return out, err
}

// replicasMax is the largest number of servers that JetStream lets keep a stream.
const replicasMax = 5

// Names returns the streams, subjects and the bucket that the settings name.
func (c Settings) Names() (in broker.StreamNames, out sinks.Names, err error) {
	if out, err = sinks.NewNames(c.NATS.Prefix); err != nil {
		return in, out, Usagef("nats.prefix: %w", err)
	}
	in = broker.NewStreamNames(c.NATS.Prefix)
	in.Replicas, in.Domain = c.NATS.Replicas, c.NATS.Domain
	if n := c.NATS.Replicas; n < 0 || n > replicasMax {
		err = Usagef("nats.replicas: %d, want 1 to %d", n, replicasMax)
	}
	return in, out, err
}

// OpenBroker connects to the server that the settings name, or starts one.
func OpenBroker(settings Settings, log *slog.Logger) (*broker.Broker, error) {
	settings.NATS.Log = log
	return broker.Open(
		broker.Config{
			ConnectConfig: settings.NATS.ConnectConfig,
			Dir:           settings.State,
			Listen:        settings.NATS.Listen,
		},
	)
}
