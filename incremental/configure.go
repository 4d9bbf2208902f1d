package incremental

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// carryOut carries out the configure events of a batch, at the end of its step:
// each replaces the communities that the configuration, or the one before it,
// defines. The core is cold afterwards and computes everything anew at the next
// emission. What cannot be carried out changes nothing and is refused.
func (c *Core) carryOut(b *event.Batch, result *Result) {
	for i, control := range b.Controls {
		if control.Op != event.Configure {
			continue
		}
		result.Refused = slices.Clone(result.Refused) // they are the store's own, which begins anew
		if err := c.configure(control.Config); err != nil {
			result.Refused = append(result.Refused, graphstore.RefusalOf(b, event.KindControl, i, event.BadConfig, err.Error()))
			continue
		}
		c.cool()
		result.Redefined = result.Redefined[:0]
		for id := range graphstore.Community(c.View().Communities()) {
			result.Redefined = append(result.Redefined, id)
		}
	}
}

// errConfigureDenied refuses a configure event, whatever it says.
var errConfigureDenied = errors.New("control.configure is deny: only the configuration says what is tracked")

// configure replaces the configured communities.
func (c *Core) configure(config json.RawMessage) error {
	if c.config.DenyConfigure {
		return errConfigureDenied
	}
	rules, selected, err := parseCommunities(config)
	if err == nil {
		_, err = c.store.SetCommunities(rules)
	}
	if err == nil {
		c.selectedBy = selected
	}
	return err
}

// parseCommunities reads {"communities": [...]} strictly.
func parseCommunities(config json.RawMessage) ([]graphstore.Rule, map[string]quant.Selection, error) {
	var wanted struct {
		Communities *[]CommunityDefinition `json:"communities"`
	}
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		return nil, nil, err
	}
	if wanted.Communities == nil {
		return nil, nil, errors.New(`want {"communities": [...]}; nothing else can be configured in the log`)
	}
	rules, selected := make([]graphstore.Rule, len(*wanted.Communities)), map[string]quant.Selection{}
	var errs []error
	for i, definition := range *wanted.Communities {
		rule, err := definition.Rule()
		if by := definition.SelectedBy; by != "" {
			selected[definition.Name] = by
		}
		rules[i] = rule
		errs = append(errs, err)
	}
	errs = append(errs, checkSelections(selected))
	return rules, selected, errors.Join(errs...)
}
