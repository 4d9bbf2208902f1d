package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gqlstream/alerts"
	"gqlstream/checkpoint"
)

// rulesFile is the file of the state directory with the rules and where in the log
// each set of them began to hold. With it a start goes through the log with the
// rules that held, so that it gives the transitions that were given.
const rulesFile = "alert-rules.json"

// generationsMax bounds how many sets of rules are remembered; only those after the
// oldest checkpoint are needed.
const generationsMax = 256

// ruleHistory is what rulesFile holds.
type ruleHistory struct {
	Generations []generation `json:"generations"`
	Dropped     int          `json:"dropped,omitempty"`
}

// generation is a set of rules. Beside them it has what they were checked against.
type generation struct {
	From     uint64        `json:"from"`   // they hold after this position
	Config   string        `json:"config"` // digest of the core's configuration
	Pipeline string        `json:"pipeline,omitempty"`
	Classes  []string      `json:"classes"`
	Methods  []string      `json:"methods"`
	Rules    []alerts.Rule `json:"rules"`
}

// readRules reads the file of a state directory; without one there were no rules.
func readRules(state string) (h ruleHistory, err error) {
	path := filepath.Join(state, rulesFile)
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
	h.Generations = append(h.Generations, g)
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

// write makes the file durable: it must be there before a rule has any effect.
func (h *ruleHistory) write(state string) error {
	if n := len(h.Generations); n > generationsMax {
		for i := range h.Generations[:n-generationsMax] {
			h.Generations[i].Rules, h.Generations[i].Classes = nil, nil // their numbers stay
		}
	}
	data, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return err
	}
	path := filepath.Join(state, rulesFile)
	disk := checkpoint.Disk{}
	if err := writeFile(disk, path+".tmp", data); err != nil {
		return fmt.Errorf("alert rules: %w", err)
	}
	if err := errors.Join(disk.Rename(path+".tmp", path), disk.SyncDir(state)); err != nil {
		return fmt.Errorf("alert rules: %w", err)
	}
	return nil
}

var _ = slices.Clone[[]int]
var _ io.Writer
