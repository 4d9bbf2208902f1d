package incremental

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// CommunityDefinition is a tracked community as configurations write it, in the
// file or in a configure event: by member events when nothing else is given.
type CommunityDefinition struct {
	Name     string         `json:"name" yaml:"name"`
	Everyone bool           `json:"everyone" yaml:"everyone"`
	Where    map[string]any `json:"where" yaml:"where"` // one attribute and the value it must have
}

// Rule returns the definition as the store wants it.
func (c CommunityDefinition) Rule() (graphstore.Rule, error) {
	rule := graphstore.Rule{Name: c.Name}
	switch {
	case c.Name == "":
		return rule, errors.New("communities: one has no name")
	case c.Everyone && len(c.Where) > 0:
		return rule, fmt.Errorf("communities: %q is everyone and has a condition; choose one", c.Name)
	case c.Everyone:
		rule.Kind = graphstore.Everyone
	case len(c.Where) > 1:
		return rule, fmt.Errorf("communities: %q has %d conditions, want one", c.Name, len(c.Where))
	}
	for key, value := range c.Where {
		rule.Kind, rule.Key = graphstore.ByAttribute, key
		switch x := value.(type) {
		case string:
			rule.Value = event.Value{Kind: event.StringValue, Text: x}
		case bool:
			rule.Value = event.Value{Kind: event.BoolValue}
			if x {
				rule.Value.Number = 1
			}
		case float64:
			rule.Value = event.Value{Kind: event.NumberValue, Number: x}
		case uint64:
			rule.Value = event.Value{Kind: event.NumberValue, Number: float64(x)}
		case int64:
			rule.Value = event.Value{Kind: event.NumberValue, Number: float64(x)}
		default:
			return rule, fmt.Errorf("communities: %q: %s must be text, a number, true or false", c.Name, key)
		}
	}
	return rule, nil
}

// configure carries out the configure events of a batch, at the end of its step:
// each replaces the communities that the configuration, or the one before it,
// defines. The core is cold afterwards and computes everything anew at the next
// emission. What cannot be carried out changes nothing and is refused.
func (c *Core) configure(controls []event.Control) (refused []event.Refusal) {
	for _, control := range controls {
		if control.Op != event.Configure {
			continue
		}
		rules, err := parseCommunities(control.Config)
		if err == nil {
			_, err = c.store.SetCommunities(rules)
		}
		if err != nil {
			refused = append(refused, event.Refusal{
				Position: control.Position, Kind: event.KindControl, Reason: event.BadConfig,
				Detail: err.Error(), Original: bytes.Clone(control.Config),
			})
			continue
		}
		c.cool()
	}
	return refused
}

// cool makes the core cold: it forgets everything that the store does not hold.
func (c *Core) cool() {
	c.warm, c.kernels, c.enq, c.walks = false, nil, nil, nil
	c.sums = neighborhood.Recount(c.store.View(), c.config.Classes, c.config.families().NeedsHardVotes())
}

// parseCommunities reads {"communities": [...]} strictly.
func parseCommunities(config json.RawMessage) ([]graphstore.Rule, error) {
	var wanted struct {
		Communities *[]CommunityDefinition `json:"communities"`
	}
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		return nil, err
	}
	if wanted.Communities == nil {
		return nil, errors.New(`want {"communities": [...]}; nothing else can be configured in the log`)
	}
	rules := make([]graphstore.Rule, len(*wanted.Communities))
	var errs []error
	for i, definition := range *wanted.Communities {
		rule, err := definition.Rule()
		rules[i] = rule
		errs = append(errs, err)
	}
	return rules, errors.Join(errs...)
}
