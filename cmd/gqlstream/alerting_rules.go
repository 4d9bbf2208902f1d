package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gqlstream/alerts"
	"gqlstream/checkpoint"
)

// alertRulesFile is the file of the state directory with the rules and where in the log
// each set of them began to hold. With it a start goes through the log with the
// rules that held, so that it gives the transitions that were given.
const alertRulesFile = "alert-rules.json"

// generationsMax bounds how many sets of rules are remembered whole: those that held since
// the oldest checkpoint are needed. Of an older one the number stays, which checkpoints name.
const generationsMax = 256

// ruleHistory is what alertRulesFile holds.
type ruleHistory struct {
	Generations []generation `json:"generations"`

	changed bool // since it was read or written
}

// generation is a set of rules. Beside them it has what they were checked against.
type generation struct {
	From     uint64        `json:"from"`   // they hold after this position
	Config   string        `json:"config"` // digest of the core's configuration
	Pipeline string        `json:"pipeline,omitempty"`
	Classes  []string      `json:"classes"`
	Methods  []string      `json:"methods"`
	Rules    []alerts.Rule `json:"rules"`

	// Its rules are not remembered. Where a start goes through it again, alerts go on under
	// the rules before it: without its classes they would all be forgotten.
	Forgotten bool `json:"forgotten,omitempty"`
}

// readRules reads the file of a state directory; without one there were no rules.
func readRules(state string) (h ruleHistory, err error) {
	path := filepath.Join(state, alertRulesFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		return h, fmt.Errorf("%s: %w; without it the state of the alerts means nothing: restore it, or move it away "+
			"with the directory of checkpoints", path, err)
	}
	return h, nil
}

// add appends a generation if it differs from the last, and reports whether it did.
// Nothing is added where there never were any rules.
func (h *ruleHistory) add(from uint64, config string, c alerts.Config) bool {
	g := generation{From: from, Config: config, Pipeline: c.Pipeline, Classes: c.Classes, Methods: c.Methods, Rules: c.Rules}
	if len(h.Generations) == 0 && len(c.Rules) == 0 {
		return false
	}
	if n := len(h.Generations); n > 0 {
		last := h.Generations[n-1]
		g.From = max(g.From, last.From)
		last.From = g.From
		if bytes.Equal(jsonOf(last), jsonOf(g)) {
			return false
		}
	}
	h.Generations, h.changed = append(h.Generations, g), true
	return true
}

func jsonOf(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain fields cannot fail
	}
	return data
}

// first returns the first generation since which the core's configuration has been
// the one with this digest; those before it have evaluated other estimates.
func (h *ruleHistory) first(digest string) int {
	n := len(h.Generations)
	for n > 0 && h.Generations[n-1].Config == digest {
		n--
	}
	return n
}

// commit makes the file durable if it has changed: before a rule has any effect,
// and not before the log is known to be the right one.
func (h *ruleHistory) commit(state string) error {
	if !h.changed {
		return nil
	}
	if n := len(h.Generations); n > generationsMax {
		for i := range h.Generations[:n-generationsMax] {
			g := &h.Generations[i]
			*g = generation{From: g.From, Config: g.Config, Forgotten: true}
		}
	}
	data, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(state, alertRulesFile), data); err != nil {
		return fmt.Errorf("alert rules: %w", err)
	}
	h.changed = false
	return nil
}

// replaceFile writes a file so that after a crash it is the old one or the new one.
func replaceFile(path string, data []byte) error {
	disk := checkpoint.Disk{}
	temporary := path + ".tmp"
	if err := disk.RemoveAll(temporary); err != nil {
		return err
	}
	file, err := disk.Create(temporary)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return errors.Join(disk.Rename(temporary, path), disk.SyncDir(filepath.Dir(path)))
}
