package web

import (
	"maps"
	"slices"
	"sync"
	"time"

	"gqlstream/sinks"
)

// Status is what the run loop knows of itself after a step. Counters count since
// the process began. Zero values are shown as unknown or nothing.
type Status struct {
	State   string // "starting", "replaying", "running", "stopping"; "running" is ready
	Message string // one line for people, such as why it is not running

	Position uint64    // applied last
	End      uint64    // last in the stream; 0 unknown. The lag is End - Position.
	LogTime  time.Time // of Position

	Steps  uint64
	Step   time.Duration // the last step took
	Stages []Stage       // of the last step, in order

	Events  map[string]uint64 // applied, by kind
	Refused map[string]uint64 // quarantined, by reason
	Late    map[string]uint64 // came late, by kind: applied, or quarantined as late

	Mismatches map[string]uint64 // values that the rule of a community cannot compare, by community

	Engine string // that keeps the kernels: "primal" or "dual"; "": none yet

	Checkpoint Checkpoint
	Graph      Graph
	Models     []Model // a new list for every Status
}

// Stage is a named part of a step.
type Stage struct {
	Name string
	Took time.Duration
}

// Checkpoint describes the newest one.
type Checkpoint struct {
	Position uint64
	At       time.Time // wall clock at its end; zero: there is none
	Took     time.Duration
	Bytes    int64
	Failed   uint64 // attempts that failed, ever
}

// Graph counts what the store holds, without what was erased.
type Graph struct{ Vertices, Edges uint64 }

const (
	samplesMax  = 600              // ten minutes for the charts
	sampleEvery = time.Second      // between two samples
	rateSamples = 5                // a rate is over this many samples
	staleAfter  = 30 * time.Second // without a Status the pipeline is not ready
	heldAfter   = 5 * time.Second  // nor when it waits for a sink for so long
)

// sample is the part of a status that the charts show.
type sample struct {
	at          time.Time
	events      map[string]uint64
	lag         uint64
	certificate float64
	step        time.Duration
}

// journal keeps the last status and a sample of each second.
type journal struct {
	mu      sync.Mutex
	status  Status
	at      time.Time // wall clock of the last push; zero: none
	samples []sample
}

// push stores a copy of a status. It reports whether a sample was taken.
func (j *journal) push(s Status, now time.Time, certificate func() float64) bool {
	s.Events, s.Refused, s.Late = maps.Clone(s.Events), maps.Clone(s.Refused), maps.Clone(s.Late)
	s.Stages, s.Mismatches = slices.Clone(s.Stages), maps.Clone(s.Mismatches)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.status, j.at = s, now
	if n := len(j.samples); n > 0 && now.Sub(j.samples[n-1].at) < sampleEvery {
		return false
	}
	if len(j.samples) == samplesMax {
		j.samples = append(j.samples[:0], j.samples[1:]...)
	}
	j.samples = append(j.samples, sample{
		at: now, events: s.Events, lag: s.lag(), certificate: certificate(), step: s.Step,
	})
	return true
}

// lag is how many messages of the stream are not applied yet.
func (s Status) lag() uint64 { return max(s.End, s.Position) - s.Position }

// read returns the last status, when it came, and the samples.
func (j *journal) read() (Status, time.Time, []sample) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status, j.at, slices.Clone(j.samples)
}

// ready reports whether the pipeline runs, and why not.
func (s *Server) ready(now time.Time) (bool, string) {
	for _, sink := range s.sinks() {
		if sink.Condition == sinks.Holding && now.Sub(sink.Since) >= heldAfter {
			return false, "waiting for " + sink.Name
		}
	}
	return s.journal.ready(now)
}

// sinks returns how the sinks do, as Config.Sinks says.
func (s *Server) sinks() []sinks.State {
	if s.config.Sinks == nil {
		return nil
	}
	return s.config.Sinks()
}

// ready reports whether the run loop runs, and why not.
func (j *journal) ready(now time.Time) (bool, string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.at.IsZero():
		return false, "starting"
	case now.Sub(j.at) > staleAfter:
		return false, "stalled"
	case j.status.State != "running":
		return false, "not running"
	}
	return true, "ready"
}

// rates returns events per second by kind at sample i, over the samples before
// it. A counter that fell, after a restart of the counting, gives no rate.
func rates(samples []sample, i int) map[string]float64 {
	out := map[string]float64{}
	from := max(0, i-rateSamples)
	if i <= 0 || i >= len(samples) {
		return out
	}
	seconds := samples[i].at.Sub(samples[from].at).Seconds()
	if seconds <= 0 {
		return out
	}
	for kind, n := range samples[i].events {
		if before := samples[from].events[kind]; n >= before {
			out[kind] = float64(n-before) / seconds
		}
	}
	return out
}
