package sinks

import (
	"context"

	"github.com/nats-io/nats.go"

	"gqlstream/alerts"
)

// alertStreamDefault is where alerts go.
const alertStreamDefault = "GQL_ALERTS"

// AlertSubject returns the subject of the alerts of a rule on a community.
func AlertSubject(rule, community string) string {
	return "gqlest.alert." + Token(rule) + "." + Token(community)
}

// Alerts appends the beginnings and ends of alerts to a stream, each exactly once,
// as NATS does with estimates. It has one owner.
type Alerts struct {
	subjects *subjects
}

// NewAlerts returns a sink on nc. The stream of c, if it names one, has the subjects
// gqlest.alert.>; its bucket is not used.
func NewAlerts(nc *nats.Conn, c NATSConfig) (*Alerts, error) {
	if c.Stream == "" {
		c.Stream = alertStreamDefault
	}
	c = c.withDefaults()
	s, err := newSubjects(nc, subjectsConfig{stream: c.Stream, log: c.Log, retryFor: c.RetryFor, everyRecord: true})
	if err != nil {
		return nil, err
	}
	return &Alerts{subjects: s}, nil
}

// Write stores the transitions of one emission, all of one position and sorted by
// rule, community and class.
func (s *Alerts) Write(ctx context.Context, transitions []alerts.Transition) error {
	var records []record
	ordinal := 0
	for i := range transitions {
		t := &transitions[i]
		if ordinal++; i == 0 || t.Rule != transitions[i-1].Rule || t.Community != transitions[i-1].Community {
			ordinal = 0
		}
		records = append(records, record{
			subject: AlertSubject(t.Rule, t.Community), place: place{t.Position, ordinal}, data: t.JSON(), id: t.ID,
		})
	}
	return s.subjects.write(ctx, records)
}

// State reports whether the loop waits for the stream.
func (s *Alerts) State() State { return s.subjects.tracker.State(s.subjects.config.stream) }

// Close leaves the connection open.
func (s *Alerts) Close() error {
	s.subjects.close()
	return nil
}
