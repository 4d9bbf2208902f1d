package graphstore

import (
	"fmt"
	"slices"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// exception finds the vertices that a rule excepts: their labels and predictions are not read. See
// EvidenceConfig.Except. It follows from the attributes, so a snapshot holds nothing of it. The
// zero exception finds none.
type exception struct {
	program *rule.Program
	values  []event.Value // scratch: inputs of an evaluation
}

// newException compiles the rule of a configuration that was validated.
func newException(config *EvidenceConfig) exception {
	if config.Except == "" {
		return exception{}
	}
	program, err := rule.Compile(config.Except)
	if err != nil {
		panic(fmt.Sprintf("graphstore: evidence.except: %v", err))
	}
	return exception{program: program}
}

// validateException reports the mistakes of a rule for exceptions.
func validateException(text string) error {
	if text == "" {
		return nil
	}
	program, err := rule.Compile(text)
	if err != nil {
		return fmt.Errorf("evidence.except: %w", err)
	}
	if program.Match(make([]event.Value, len(program.Keys()))) == rule.Yes {
		return fmt.Errorf("evidence.except: %q holds for vertices without attributes, so that no "+
			"label or prediction would be read; name what is excepted, such as kind == \"item\"",
			text)
	}
	return nil
}

// Exception returns the rule for exceptions: the keys of the attributes that it reads, and whether
// it holds for values of these. Without a rule both are nil.
func (c *EvidenceConfig) Exception() (keys []string, holds func([]event.Value) bool, err error) {
	if err := validateException(c.Except); c.Except == "" || err != nil {
		return nil, nil, err
	}
	x := newException(c)
	return x.program.Keys(), func(values []event.Value) bool {
		return x.program.Match(values) == rule.Yes
	}, nil
}

// reads reports whether the rule reads one of these attributes.
func (x *exception) reads(list []event.Attribute) bool {
	return x.program != nil && slices.ContainsFunc(list, func(a event.Attribute) bool {
		return slices.Contains(x.program.Keys(), a.Key)
	})
}

// holds reports whether labels and predictions of a vertex are not read.
func (x *exception) holds(all attributes, v Vertex) bool {
	if x.program == nil {
		return false
	}
	x.values = all.list(v, x.program.Keys(), x.values)
	outcome := x.program.Match(x.values)
	clear(x.values) // do not keep texts alive
	return outcome == rule.Yes
}
