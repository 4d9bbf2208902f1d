package incremental

import (
	"bytes"
	"encoding/json"
	"errors"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

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
	c.warm, c.kernels, c.enq, c.walks, c.dual, c.density = false, nil, nil, nil, nil, nil
	c.planner, c.credit = plan{}, 0
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
