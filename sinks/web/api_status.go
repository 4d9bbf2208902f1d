package web

import (
	"cmp"
	"context"
	"maps"
	"time"

	"gqlstream/sinks"
)

// statusAnswer is a Status as the API shows it. Durations are in seconds, rates
// in events per second.
type statusAnswer struct {
	Status
	Ready       bool               `json:"ready"`
	Now         time.Time          `json:"now"`
	Started     time.Time          `json:"started"`
	Pushed      *time.Time         `json:"pushed"` // the last status of the run loop
	Lag         uint64             `json:"lag"`
	LogTime     *time.Time         `json:"log_time"`
	LogAge      *float64           `json:"log_age_seconds"`
	StepSeconds float64            `json:"step_seconds"`
	Rates       map[string]float64 `json:"rates"`
	Sinks       []sinkAnswer       `json:"sinks"`
	Checkpoint  *checkpointAnswer  `json:"checkpoint"`
	Communities int                `json:"communities"`
	Writes      uint64             `json:"writes"` // grows with every emission
	Certificate float64            `json:"certificate"`
	Streams     int                `json:"streams"`
	History     []sample           `json:"history,omitzero"`
}

// sinkAnswer is a sinks.State; the last two are null for what is no follower.
type sinkAnswer struct {
	Name      string     `json:"name"`
	Condition string     `json:"condition"`
	Since     *time.Time `json:"since"`
	Reason    string     `json:"reason"`
	Retries   uint64     `json:"retries"`
	Behind    *uint64    `json:"behind"`
	Position  *uint64    `json:"position"`
}

func sinkAnswerOf(s sinks.State) sinkAnswer {
	a := sinkAnswer{Name: s.Name, Condition: s.Condition, Reason: s.Reason, Retries: s.Retries}
	if s.Follows {
		a.Behind, a.Position = &s.Behind, &s.Position
	}
	if !s.Since.IsZero() {
		a.Since = new(s.Since.UTC())
	}
	return a
}

type checkpointAnswer struct {
	Position   uint64    `json:"position"`
	At         time.Time `json:"at"`
	AgeSeconds float64   `json:"age_seconds"`
	Seconds    float64   `json:"seconds"` // it took
	Bytes      int64     `json:"bytes"`
	Failed     uint64    `json:"failed"`
}

func askStatus(_ context.Context, v *view, q *asked) (any, error) {
	return v.statusNow(q.word("history", "false", "true") == "true"), nil
}

// statusNow returns the status, with the samples if asked for.
func (v *view) statusNow(history bool) statusAnswer {
	now := time.Now().UTC()
	status, at, samples := v.journal.read()
	totals := v.store.totals()
	out := statusAnswer{
		Status: status, Now: now, Started: v.started.UTC(), Lag: status.lag(), StepSeconds: status.Step.Seconds(),
		Sinks: []sinkAnswer{}, Rates: map[string]float64{},
		Communities: totals.communities, Writes: totals.writes, Certificate: totals.certificate,
	}
	out.State, out.End = cmp.Or(status.State, "starting"), max(status.End, status.Position)
	out.Stages = append([]Stage{}, status.Stages...)
	out.Events, out.Refused = maps.Collect(maps.All(status.Events)), maps.Collect(maps.All(status.Refused)) // never nil, which is null in JSON
	out.Models = judgedModels(status.Models)
	out.Ready, _ = v.ready(now)
	out.Streams, _, _ = v.hub.counts()
	if !at.IsZero() {
		out.Pushed = new(at.UTC())
	}
	if !status.LogTime.IsZero() {
		out.LogTime, out.LogAge = new(status.LogTime.UTC()), new(now.Sub(status.LogTime).Seconds())
	}
	for _, sink := range v.config.Sinks() {
		out.Sinks = append(out.Sinks, sinkAnswerOf(sink))
	}
	if c := status.Checkpoint; !c.At.IsZero() || c.Failed > 0 {
		out.Checkpoint = &checkpointAnswer{c.Position, c.At.UTC(), now.Sub(c.At).Seconds(), c.Took.Seconds(), c.Bytes, c.Failed}
	}
	if len(samples) > 0 {
		out.Rates = samples[len(samples)-1].Rates
	}
	if history {
		out.History = append([]sample{}, samples...)
	}
	return out
}
