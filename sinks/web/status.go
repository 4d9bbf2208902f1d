package web

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gqlstream/internal/request"
)

// Status describes the run loop after a step. Counters count since
// the process began. Zero values are shown as unknown or nothing.
type Status struct {
	// "starting", "replaying", "running", "waiting", "stopping"; "running" is ready
	State    string `json:"state"`
	Message  string `json:"message"`  // one line for people, such as why it is not running
	Progress string `json:"progress"` // current work of a long step; see Server.Progress

	Position uint64 `json:"position"` // applied last
	// last in the stream; 0 unknown. The lag is End - Position.
	End     uint64     `json:"end"`
	LogTime *time.Time `json:"log_time"` // of Position; nil: the log has none

	Steps       uint64  `json:"steps"`
	StepSeconds float64 `json:"step_seconds"` // the last step took
	Stages      []Stage `json:"stages"`       // of the last step, in order

	Events  map[string]uint64 `json:"events"`  // applied, by kind
	Refused map[string]uint64 `json:"refused"` // quarantined, by reason
	// came late, by kind: applied, or quarantined as late
	Late map[string]uint64 `json:"-"`

	// values that the rule of a community cannot compare, by community
	Mismatches map[string]uint64 `json:"-"`

	// Warnings that do not stop the run; /readyz repeats Warning.
	Warning    string        `json:"-"`
	LogAhead   time.Duration `json:"-"` // of the log's time before the clocks
	LeftOut    uint64        `json:"-"` // refusals without an entry of their own in the quarantine
	Quarantine Quarantine    `json:"-"`
	Fills      []Fill        `json:"-"`

	Checkpoint *Checkpoint `json:"checkpoint"` // nil: none was tried
	Graph      Graph       `json:"graph"`
	Evidence   Evidence    `json:"evidence"`
	Models     []Model     `json:"models"`

	Confusion Confusion `json:"-"` // see /api/v1/classifier
}

// Stage is a named part of a step.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Quarantine counts the entries and bytes of the quarantine, and the entries that have left it.
type Quarantine struct {
	Entries, Bytes, BytesMax, Removed uint64
}

// Fill counts the things of one kind that the store holds, and its limit of them.
type Fill struct {
	Kind      string
	Used, Max int
}

// Checkpoint describes the newest one.
type Checkpoint struct {
	Position uint64    `json:"position"`
	At       time.Time `json:"at"`      // wall clock at its end; zero: there is none
	Seconds  float64   `json:"seconds"` // it took
	Bytes    int64     `json:"bytes"`
	Failed   uint64    `json:"failed"` // attempts that failed, ever
}

// Graph counts the vertices and edges of the store, without erased ones.
type Graph struct {
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
}

// Evidence counts the vertices with labels, predictions and communities at Position, and those
// of them with an edge. If few have an edge, their ids probably differ from those of the edges.
type Evidence struct {
	Position      uint64            `json:"position"` // 0: not counted yet
	Labels        Meeting           `json:"labels"`   // without audit labels
	LabelsByClass map[string]uint64 `json:"labels_by_class"`
	Predictions   Meeting           `json:"predictions"`
	Members       Meeting           `json:"members"` // of at least one community
}

// Meeting counts vertices, and those of them that have an edge.
type Meeting struct {
	Vertices uint64 `json:"vertices"`
	WithEdge uint64 `json:"with_edge"`
}

// Add counts a vertex.
func (m *Meeting) Add(edge bool) {
	if m.Vertices++; edge {
		m.WithEdge++
	}
}

const (
	staleAfter = 30 * time.Second // without a Status the pipeline is not ready
	heldAfter  = 5 * time.Second  // nor when it waits for a sink for so long
)

// journal keeps the last status.
type journal struct {
	mu     sync.Mutex
	status Status
	at     time.Time // wall clock of the last push; zero: none
	end    uint64    // of the stream, when it was last looked at
	pace   pace      // of reading history

	judgements classifierLog
	classes    []string

	explaining string // how far the explanation under way has come; empty: none is

	step   prometheus.Histogram // durations
	stages *prometheus.HistogramVec
}

// Status stores the report of the run loop. It is cheap: call it after
// every step. Maps and lists become the server's.
func (j *journal) Status(status Status) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if status.Steps != j.status.Steps { // else nothing has happened since
		j.step.Observe(status.StepSeconds)
		for _, stage := range status.Stages {
			j.stages.WithLabelValues(stage.Name).Observe(stage.Seconds)
		}
	}
	status.End = max(status.End, j.end)
	j.status, j.at = status, time.Now()
	j.pace.noteStatus(&status, j.at)
	j.judgements.update(&status, j.classes)
}

// LogEnd reports the end of the stream; 0 is unknown. A Status knows the end as of when its
// messages were fetched, which may be long ago. Any goroutine calls it.
func (j *journal) LogEnd(end uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.end = end
	j.status.End = max(j.status.End, end)
}

// Progress reports a long step in one line, "" when it has ended, and the end of the stream, 0
// if unknown: messages behind the step are lag. A step that reports it is
// not stalled. Any goroutine calls it, once a second say, while the run loop cannot report.
func (j *journal) Progress(text string, end uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.status.Progress, j.status.End = text, max(j.status.End, end)
	if !j.at.IsZero() {
		j.at = time.Now()
	}
}

// explain records how far the explanation that is being made has come; empty: none is. Any
// goroutine calls it.
func (j *journal) explain(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.explaining = text
}

// progressOfExplanation returns the last argument of explain.
func (j *journal) progressOfExplanation() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.explaining
}

// lag returns the number of messages of the stream that are not applied yet.
func (s Status) lag() uint64 { return max(s.End, s.Position) - s.Position }

// read returns the last status, and when it came.
func (j *journal) read() (Status, time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status, j.at
}

// readPace returns the pace of reading history as well.
func (j *journal) readPace() (Status, time.Time, pace) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status, j.at, j.pace
}

// Model holds the accuracy of a model version, judged by labels as they arrive.
type Model struct {
	Version  string `json:"version"`
	Degraded bool   `json:"degraded"`
	// evidence that it is worse than at first: 0 is none, at 1 it is Degraded
	Drift   float64      `json:"drift"`
	Classes []ModelClass `json:"classes"`
}

// ModelClass is the same for the labels of one true class. Means fade.
type ModelClass struct {
	Class     string   `json:"class"`
	Judged    uint64   `json:"judged"`
	Accuracy  float64  `json:"accuracy"`
	Brier     float64  `json:"brier"`
	LogScore  float64  `json:"log_score"`
	Reference *float64 `json:"reference"` // accuracy at first; nil while there are too few labels
}

// statusAnswer is a Status as the API shows it. Durations are in seconds.
type statusAnswer struct {
	Status
	Instance    string          `json:"instance"` // as info has it
	Ready       bool            `json:"ready"`
	Headline    Headline        `json:"headline"`
	Explaining  string          `json:"explaining"` // how far the explanation under way has come
	Now         time.Time       `json:"now"`
	Started     time.Time       `json:"started"`
	Pushed      *time.Time      `json:"pushed"` // the last status of the run loop
	Lag         uint64          `json:"lag"`
	Sinks       []request.State `json:"sinks"`
	Communities int             `json:"communities"`
	Estimated   uint64          `json:"estimated"` // position of the newest estimates
}

func askStatus(_ context.Context, s *Server, _ *params) (any, error) {
	now := time.Now().UTC()
	status, at := s.journal.read()
	out := statusAnswer{
		Status:   status,
		Instance: s.instance,
		Now:      now,
		Started:  s.started.UTC(),
		Lag:      status.lag(),
		Sinks:    append([]request.State{}, s.config.Sinks()...),
	}
	out.Communities, out.Estimated = s.store.totals()
	out.State = cmp.Or(status.State, "starting")
	out.End = max(status.End, status.Position)
	out.Stages, out.Models = append([]Stage{}, status.Stages...), append(
		[]Model{},
		status.Models...)
	// never nil, which is null in JSON
	out.Events, out.Refused = maps.Collect(maps.All(
		status.Events)), maps.Collect(maps.All(status.Refused))
	out.Evidence.LabelsByClass = maps.Collect(maps.All(status.Evidence.LabelsByClass))
	out.Ready, _ = s.ready(now)
	out.Headline, out.Explaining = s.headline(now), s.journal.progressOfExplanation()
	if !at.IsZero() {
		out.Pushed = new(at.UTC())
	}
	return out, nil
}
