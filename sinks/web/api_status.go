package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"gqlstream/sinks"
)

// statusAnswer is a Status as the API shows it. Durations are in seconds, rates
// in events per second.
type statusAnswer struct {
	State       string             `json:"state"`
	Message     string             `json:"message"`
	Ready       bool               `json:"ready"`
	Now         time.Time          `json:"now"`
	Started     time.Time          `json:"started"`
	Pushed      *time.Time         `json:"pushed"` // the last status of the run loop
	Position    uint64             `json:"position"`
	End         uint64             `json:"end"`
	Lag         uint64             `json:"lag"`
	LogTime     *time.Time         `json:"log_time"`
	LogAge      *float64           `json:"log_age_seconds"`
	Steps       uint64             `json:"steps"`
	StepSeconds float64            `json:"step_seconds"`
	Stages      []stageAnswer      `json:"stages"`
	Events      map[string]uint64  `json:"events"`
	Rates       map[string]float64 `json:"rates"`
	Refused     map[string]uint64  `json:"refused"`
	Sinks       []sinkAnswer       `json:"sinks"`
	Checkpoint  *checkpointAnswer  `json:"checkpoint"`
	Graph       graphAnswer        `json:"graph"`
	Models      []modelAnswer      `json:"models"`
	Communities int                `json:"communities"`
	Writes      uint64             `json:"writes"` // grows with every emission
	Certificate float64            `json:"certificate"`
	Engine      string             `json:"engine"`
	Streams     int                `json:"streams"`
	History     *historySamples    `json:"history,omitempty"`
}

type stageAnswer struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// sinkAnswer is a sinks.State; the last four are zero for a sink without a queue.
type sinkAnswer struct {
	Name      string     `json:"name"`
	Condition string     `json:"condition"`
	Since     *time.Time `json:"since"`
	Reason    string     `json:"reason"`
	Retries   uint64     `json:"retries"`
	Emissions int        `json:"queue_emissions"`
	Bytes     int64      `json:"queue_bytes"`
	BytesMax  int64      `json:"queue_bytes_max"`
	Age       float64    `json:"queue_age_seconds"`
}

func sinkAnswerOf(s sinks.State, now time.Time) sinkAnswer {
	a := sinkAnswer{
		Name: s.Name, Condition: s.Condition, Reason: s.Reason, Retries: s.Retries,
		Emissions: s.Emissions, Bytes: s.Bytes, BytesMax: s.BytesMax,
	}
	if !s.Since.IsZero() {
		since := s.Since.UTC()
		a.Since = &since
	}
	if !s.Oldest.IsZero() {
		a.Age = max(0, now.Sub(s.Oldest).Seconds())
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

type graphAnswer struct {
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
}

// historySamples are the charts of the pipeline page: columns of equal length.
type historySamples struct {
	Time        []float64            `json:"time"` // Unix seconds
	Rates       map[string][]float64 `json:"rates"`
	Lag         []uint64             `json:"lag"`
	Certificate []float64            `json:"certificate"`
	StepSeconds []float64            `json:"step_seconds"`
}

func (s *Server) serveStatus(w http.ResponseWriter, _ *http.Request, query url.Values) {
	switch query.Get("history") {
	case "", "false":
		answer(w, s.statusNow(false))
	case "true":
		answer(w, s.statusNow(true))
	default:
		fail(w, http.StatusBadRequest, "history: want true or false")
	}
}

// statusNow returns the status, with the samples if asked for.
func (s *Server) statusNow(history bool) statusAnswer {
	now := time.Now().UTC()
	status, at, samples := s.journal.read()
	totals := s.store.totals()
	out := statusAnswer{
		State: status.State, Message: status.Message, Now: now, Started: s.started.UTC(),
		Position: status.Position, End: max(status.End, status.Position), Lag: status.lag(), Steps: status.Steps,
		StepSeconds: status.Step.Seconds(), Stages: []stageAnswer{}, Sinks: []sinkAnswer{},
		Events: orEmpty(status.Events), Refused: orEmpty(status.Refused),
		Rates: rates(samples, len(samples)-1), Graph: graphAnswer(status.Graph),
		Communities: totals.communities, Writes: totals.writes, Certificate: totals.certificate, Engine: status.Engine,
		Models: modelAnswers(status.Models),
	}
	if out.State == "" {
		out.State = "starting"
	}
	out.Ready, _ = s.ready(now)
	out.Streams, _, _ = s.hub.counts()
	if !at.IsZero() {
		at = at.UTC()
		out.Pushed = &at
	}
	if !status.LogTime.IsZero() {
		logTime, age := status.LogTime.UTC(), now.Sub(status.LogTime).Seconds()
		out.LogTime, out.LogAge = &logTime, &age
	}
	for _, st := range status.Stages {
		out.Stages = append(out.Stages, stageAnswer{st.Name, st.Took.Seconds()})
	}
	for _, sink := range s.sinks() {
		out.Sinks = append(out.Sinks, sinkAnswerOf(sink, now))
	}
	if c := status.Checkpoint; !c.At.IsZero() || c.Failed > 0 {
		out.Checkpoint = &checkpointAnswer{
			c.Position, c.At.UTC(), now.Sub(c.At).Seconds(), c.Took.Seconds(), c.Bytes, c.Failed,
		}
	}
	if history {
		out.History = columnsOf(samples)
	}
	return out
}

func orEmpty(m map[string]uint64) map[string]uint64 {
	if m == nil {
		return map[string]uint64{}
	}
	return m
}

// columnsOf turns samples into columns. A kind that a sample lacks is zero there.
func columnsOf(samples []sample) *historySamples {
	h := &historySamples{
		Time: []float64{}, Rates: map[string][]float64{}, Lag: []uint64{}, Certificate: []float64{},
		StepSeconds: []float64{},
	}
	for i, sm := range samples {
		if i == 0 { // there is no rate yet
			continue
		}
		h.Time = append(h.Time, float64(sm.at.UnixMilli())/1000)
		h.Lag = append(h.Lag, sm.lag)
		h.Certificate = append(h.Certificate, sm.certificate)
		h.StepSeconds = append(h.StepSeconds, sm.step.Seconds())
		for kind, rate := range rates(samples, i) {
			column := h.Rates[kind]
			h.Rates[kind] = append(append(column, make([]float64, i-1-len(column))...), rate)
		}
	}
	for kind, column := range h.Rates {
		h.Rates[kind] = slices.Concat(column, make([]float64, len(h.Time)-len(column)))
	}
	return h
}

// withTimeout returns the request's context with an end.
func withTimeout(r *http.Request, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(r.Context(), most, fmt.Errorf("web: no answer within %v", most))
}
