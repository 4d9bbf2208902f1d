package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"gqlstream/incremental/posterior"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

// Late decides which events are late, and refuses late events of some kinds: edges, labels,
// predictions, members, posts. Late events of other kinds apply and are counted.
type Late struct {
	After time.Duration `yaml:"after"` // 0: no event is late
	// limit on an event's time after its message's; 0: an hour; < 0: none
	Ahead  time.Duration `yaml:"ahead"`
	Divert []string      `yaml:"divert"`
}

// Policy returns the policy. The core validates it.
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
				"late.divert: %q is not one of edges, labels, predictions, posts, members",
				kind)
		}
		*refused = true
	}
	return p, nil
}

// Labels describes the calibration labels as a whole.
type Labels struct {
	// Drawn is at-random or by-class; if empty it is inferred from the labels.
	Drawn posterior.Drawn `yaml:"drawn"`
}

// Control lists the control events that are allowed.
type Control struct {
	Configure string `yaml:"configure"` // allow, the default, or deny
}

// Steps returns how the log is cut into steps, and the policy for late events.
func (c *Settings) Steps() (ingest.StepConfig, error) {
	s := c.Step
	late, err := c.Late.Policy()
	out := ingest.StepConfig{
		Every:     s.Every,
		EmitEvery: cmp.Or(s.EmitEvery, emitEvery(s.Every)),
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

// emitEvery returns the default of step.emit_every: the least multiple of step.every that is at
// least a second.
func emitEvery(every time.Duration) time.Duration {
	every = cmp.Or(every, ingest.StepEveryDefault)
	if every < 0 {
		return 0 // refused elsewhere
	}
	return (time.Second + every - 1) / every * every
}

// replicasMax is the largest number of replicas of a JetStream stream.
const replicasMax = 5

// Names returns the names of the streams, subjects and the bucket.
func (c Settings) Names() (in broker.StreamNames, out sinks.Names, err error) {
	if out, err = sinks.NewNames(c.NATS.Prefix); err != nil {
		return in, out, Usagef("nats.prefix: %w", err)
	}
	in = broker.NewStreamNames(c.NATS.Prefix)
	in.Replicas = c.NATS.Replicas
	in.Domain = c.NATS.Domain
	in.LogBytes = c.NATS.LogBytes
	if c.NATS.GraphOf != "" {
		_, err = sinks.NewNames(c.NATS.GraphOf)
		in.GraphOf = broker.NewStreamNames(c.NATS.GraphOf).Log
		if err != nil || in.GraphOf == in.Log {
			err = Usagef("nats.graph_of: %q: want the prefix of another pipeline on the server, "+
				"and a nats.prefix of its own for this one", c.NATS.GraphOf)
		}
	}
	if c.NATS.LogBytes < 0 {
		err = Usagef("nats.log_bytes_max: %d is negative", c.NATS.LogBytes)
	}
	if n := c.NATS.Replicas; n < 0 || n > replicasMax {
		err = Usagef("nats.replicas: %d, want 1 to %d", n, replicasMax)
	}
	return in, out, errors.Join(err, c.NATS.validateAnswers())
}

// validateAnswers refuses reply subjects that a stream of a pipeline, or the server, listens to.
func (n NATS) validateAnswers() error {
	if n.URL == "" && (n.Answers.URL != "" || n.Answers.Credentials != "") {
		return Usagef(
			"nats.answers: the embedded server has no users; give nats.url, or no answers")
	}
	for _, inbox := range n.Answers.Inboxes {
		if first, _, _ := strings.Cut(inbox, "."); first == "" ||
			strings.ContainsAny(inbox, "*> \t$") ||
			strings.HasPrefix(first, strings.ToLower(cmp.Or(n.Prefix, "gql"))) {
			return Usagef(
				"nats.answers.inboxes: %q: want the prefix of the subjects of clients' inboxes"+
					", such as _INBOX", inbox)
		}
	}
	return nil
}

// ConnectToAnswer returns a connection for answering requests. It is a separate one, which the
// caller closes, if the settings name a user for it, with permission to publish to inboxes alone.
// Otherwise it is nc.
func ConnectToAnswer(settings Settings, nc *nats.Conn, log *slog.Logger) (
	answers *nats.Conn, own bool, err error,
) {
	c := settings.NATS.ConnectConfig
	if settings.NATS.Answers.URL == "" && settings.NATS.Answers.Credentials == "" {
		return nc, false, nil
	}
	c.URL = cmp.Or(settings.NATS.Answers.URL, c.URL)
	c.Credentials = cmp.Or(settings.NATS.Answers.Credentials, c.Credentials)
	c.Log = log
	answers, err = broker.Connect(c)
	return answers, err == nil, err
}

// OpenBroker connects to the server in the settings, or starts one.
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
