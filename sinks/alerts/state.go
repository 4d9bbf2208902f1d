package alerts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"gqlstream/quant/difference"
)

// format is the version of the saved state. Of format 1, which knew no movements, and 2, which knew
// no counts, states are read and detectors begin again.
const format = 3

// saved is the state of an engine, with the rules that made it.
type saved struct {
	Format  int      `json:"format"`
	Classes []string `json:"classes"`
	Rules   []Rule   `json:"rules"`
	Alerts  []*alert `json:"alerts"`

	Differences difference.Fold `json:"differences,omitempty"`

	Budget Budget       `json:"budget"`
	Tails  []*tail      `json:"tails,omitempty"` // by rule
	Ended  []Transition `json:"ended,omitempty"`

	Quietings []Quieting `json:"quietings,omitempty"`
	Now       int64      `json:"now,omitempty"` // log time of the last emission
}

// encode writes rules, state and transitions as JSON; plain fields cannot fail.
func encode(v any) []byte {
	data, err := PlainJSON(v)
	if err != nil {
		panic("alerts: " + err.Error())
	}
	return data
}

// JSON is the transition as it is delivered, and as files have it.
func (t *Transition) JSON() []byte { return encode(t) }

// PlainJSON returns the JSON of a value without escapes of <, > and &.
func PlainJSON(v any) ([]byte, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(data.Bytes(), []byte("\n")), err
}

// Save returns the state. The same states have the same bytes.
func (e *Engine) Save() []byte {
	return encode(saved{
		Format:      format,
		Classes:     e.config.Classes,
		Rules:       e.config.Rules,
		Differences: e.differences,
		Budget:      e.config.Budget,
		Tails:       e.tails,
		Ended:       e.ended,
		Quietings:   e.quietings,
		Now:         e.now,
		Alerts: slices.DeleteFunc(slices.Clone(e.list),
			func(a *alert) bool { return a.rule == nil && a.State != Firing }),
	})
}

// Restore returns an engine with the state that Save returned, under the rules
// that were in force then; Configure sets others. Pipeline, methods and names
// for people are taken from c. The engine goes on as the one that was saved would have.
func Restore(c Config, data []byte) (*Engine, error) {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("alerts: restore: %w", err)
	}
	if s.Format < 1 || s.Format > format {
		return nil, fmt.Errorf("alerts: restore: format %d, this one reads %d", s.Format, format)
	}
	e := &Engine{
		list:        s.Alerts,
		differences: s.Differences,
		tails:       s.Tails,
		ended:       s.Ended,
		quietings:   s.Quietings,
		now:         s.Now,
	}
	e.config = Config{
		Pipeline: c.Pipeline, Methods: c.Methods, Classes: s.Classes, Rules: s.Rules,
		Budget: cmp.Or(s.Budget, BudgetDefault), Display: c.Display,
	}
	if s.Format < format {
		e.tails = nil
	}
	for len(e.tails) < len(s.Rules) {
		e.tails = append(e.tails, &tail{})
	}
	for _, a := range e.list {
		if a == nil || a.Class < 0 || a.Class >= len(s.Classes) {
			return nil, fmt.Errorf("alerts: restore: an alert is of none of %d classes",
				len(s.Classes))
		}
		if s.Format < format {
			a.Detector.restart()
		}
		if a.Gone != "" {
			continue
		}
		at := slices.IndexFunc(e.config.Rules, func(r Rule) bool { return r.Name == a.Rule })
		if at < 0 {
			return nil, fmt.Errorf("alerts: restore: no rule %q", a.Rule)
		}
		a.rule, a.at = &e.config.Rules[at], at
	}
	e.index()
	return e, nil
}
