package request

import (
	"sync"
	"time"
)

// Conditions of a writer or a follower that depends on a broker.
const (
	Delivering = "delivering" // everything is delivered or on its way
	Retrying   = "retrying"   // it fails and retries; new messages wait in the stream
	Holding    = "holding"    // the loop is waiting for it
)

// State describes the condition, for people and metrics.
type State struct {
	Name      string    `json:"name"`
	Condition string    `json:"condition"`      // Delivering, Retrying or Holding
	Since     time.Time `json:"since,omitzero"` // start of the condition, except for Delivering
	Reason    string    `json:"reason"`         // of a condition other than Delivering
	Retries   uint64    `json:"retries"`        // failed attempts since the process began

	Follows  bool   `json:"follows"`  // it is a follower; the next two fields belong to it
	Behind   uint64 `json:"behind"`   // messages of the output log that it has not taken
	Position uint64 `json:"position"` // its output is durable up to here
}

// Tracker tracks a condition. Any goroutine may use it.
type Tracker struct {
	mu      sync.Mutex
	failing string // reason; empty: it works
	holding string // reason; empty: the loop is not waiting
	since   time.Time
	retries uint64
}

// Failed records a failed attempt that will be repeated. holds says whether the loop waits for it.
func (t *Tracker) Failed(err error, holds bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retries++
	t.begin()
	if t.failing = err.Error(); holds {
		t.holding = t.failing
	}
}

// Hold records that the loop waits for the sink, which need not have failed.
func (t *Tracker) Hold(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin()
	t.holding = reason
}

func (t *Tracker) begin() {
	if t.failing == "" && t.holding == "" {
		t.since = time.Now()
	}
}

// Works records a delivery. The loop goes on.
func (t *Tracker) Works() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failing, t.holding = "", ""
}

// State returns the condition under a name.
func (t *Tracker) State(name string) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := State{Name: name, Condition: Delivering, Retries: t.retries}
	switch {
	case t.holding != "":
		s.Condition = Holding
		s.Reason = t.holding
		s.Since = t.since
		if t.failing != "" && t.failing != t.holding {
			s.Reason += "; " + t.failing
		}
	case t.failing != "":
		s.Condition = Retrying
		s.Reason = t.failing
		s.Since = t.since
	}
	return s
}
