package main

import (
	"errors"
	"fmt"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// windowsConfig says how long assertions hold that have no ttl; 0 is for ever.
type windowsConfig struct {
	Edges       time.Duration `yaml:"edges"`
	Labels      time.Duration `yaml:"labels"`
	Predictions time.Duration `yaml:"predictions"`
}

// lateConfig says which events are late, and by kind what becomes of them: apply,
// the default, or divert.
type lateConfig struct {
	After       time.Duration `yaml:"after"` // 0: no event is late
	Edges       string        `yaml:"edges"`
	Labels      string        `yaml:"labels"`
	Predictions string        `yaml:"predictions"`
	Members     string        `yaml:"members"`
}

// What becomes of late events.
const (
	lateApply  = "apply"
	lateDivert = "divert"
)

// policy returns the policy; whether it makes sense is the core's to say.
func (c *lateConfig) policy() (event.LatePolicy, error) {
	p := event.LatePolicy{After: c.After}
	var errs []error
	for _, kind := range [...]struct {
		name, word string
		refused    *bool
	}{
		{"edges", c.Edges, &p.Edges},
		{"labels", c.Labels, &p.Labels},
		{"predictions", c.Predictions, &p.Predictions},
		{"members", c.Members, &p.Members},
	} {
		switch kind.word {
		case "", lateApply:
		case lateDivert:
			*kind.refused = true
		default:
			errs = append(errs, fmt.Errorf("late.%s: %q is neither %s nor %s", kind.name, kind.word, lateApply, lateDivert))
		}
	}
	return p, errors.Join(errs...)
}

// effective fills in the words.
func (c *lateConfig) effective() {
	for _, word := range [...]*string{&c.Edges, &c.Labels, &c.Predictions, &c.Members} {
		if *word == "" {
			*word = lateApply
		}
	}
}

// steps returns how the log is cut into steps, and what of it comes late.
func (c *fileConfig) steps() (ingest.StepConfig, error) {
	s := c.Step
	out := ingest.StepConfig{EventsMax: s.EventsMax, Every: s.Every, EmitEvery: s.EmitEvery}
	var err error
	if out.Late, err = c.Late.policy(); err != nil {
		return out, usageError{err}
	}
	switch s.Time {
	case "", "received":
		out.Time = ingest.ReceivedTime
	case "event":
		out.Time = ingest.EventTime
	default:
		return out, usagef("step.time: %q is neither received nor event", s.Time)
	}
	return out, nil
}
