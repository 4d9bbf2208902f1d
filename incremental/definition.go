package incremental

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant/stats"
)

// CommunityDefinition is a tracked community as configurations write it, in the
// file or in a configure event: by member events when nothing else is given.
type CommunityDefinition struct {
	Name     string `json:"name" yaml:"name"`
	Everyone bool   `json:"everyone" yaml:"everyone,omitempty"`
	// one attribute and the value it must have
	Where map[string]any `json:"where" yaml:"where,omitempty"`
	// over attributes; see package graphstore/rule
	Expression string         `json:"rule" yaml:"rule,omitempty"`
	Ego        *EgoDefinition `json:"ego" yaml:"ego,omitempty"`

	// SelectedBy declares how the members were selected, for auto; see Selection.
	SelectedBy stats.Selection `json:"selected_by" yaml:"selected_by,omitempty"`
}

// selectedByEdges is the declaration that leaves the question to the edges inside.
const selectedByEdges stats.Selection = "edges"

// Selection returns how the members were selected: as declared, and where nothing is declared by
// attribute if a condition on attributes defines the community. Empty, the edges inside decide.
func (c CommunityDefinition) Selection() stats.Selection {
	switch {
	case c.SelectedBy == selectedByEdges:
		return stats.ByEdges
	case c.SelectedBy == "" && (len(c.Where) > 0 || c.Expression != ""):
		return stats.ByAttribute
	}
	return c.SelectedBy
}

// EgoDefinition is an ego network: the vertices within hops of a root.
type EgoDefinition struct {
	Root       any `json:"root" yaml:"root"` // name or number of a vertex
	Hops       int `json:"hops" yaml:"hops"`
	MembersMax int `json:"members_max" yaml:"members_max,omitempty"`
}

// Rule returns the definition in the store's form. The store decides whether the rule itself is
// sound.
func (c CommunityDefinition) Rule() (graphstore.Rule, error) {
	rule := graphstore.Rule{Name: c.Name}
	if c.Name == "" {
		return rule, errors.New("communities: one has no name")
	}
	var given []string
	var err error
	if c.Everyone {
		given, rule.Kind = append(given, "everyone"), graphstore.Everyone
	}
	if len(c.Where) > 0 {
		given, err = append(given, "where"), c.where(&rule)
	}
	if c.Expression != "" {
		given = append(given, "rule")
		rule.Kind = graphstore.ByExpression
		rule.Expression = strings.TrimSpace(c.Expression)
	}
	if c.Ego != nil {
		given, err = append(given, "ego"), c.Ego.fill(&rule)
	}
	if len(given) > 1 {
		return rule, fmt.Errorf("communities: %q is defined by %s; choose "+
			"one", c.Name, strings.Join(given, " and "))
	}
	if err != nil {
		return rule, fmt.Errorf("communities: %q: %w", c.Name, err)
	}
	return rule, nil
}

func (c CommunityDefinition) where(rule *graphstore.Rule) error {
	if len(c.Where) > 1 {
		return fmt.Errorf("where has %d conditions, want one; a rule can have more", len(c.Where))
	}
	for key, value := range c.Where {
		rule.Kind, rule.Key = graphstore.ByAttribute, key
		number, isNumber := valueOf(value)
		switch x := value.(type) {
		case string:
			rule.Value = event.Value{Kind: event.StringValue, Text: x}
		case bool:
			rule.Value = event.Value{Kind: event.BoolValue}
			if x {
				rule.Value.Number = 1
			}
		default:
			if !isNumber {
				return fmt.Errorf("%s must be text, a number, true or false", key)
			}
			rule.Value = number
		}
	}
	return nil
}

// valueOf reads a number of YAML or JSON as the value of an attribute. A whole number beyond 2^53
// is text.
func valueOf(value any) (event.Value, bool) {
	switch x := value.(type) {
	case uint64:
		return event.WholeValue(strconv.FormatUint(x, 10)), true
	case int64:
		return event.WholeValue(strconv.FormatInt(x, 10)), true
	case json.Number:
		if _, err := strconv.ParseInt(x.String(), 10, 64); err == nil {
			return event.WholeValue(x.String()), true
		}
	}
	x, isNumber := numberOf(value)
	return event.Value{Kind: event.NumberValue, Number: x}, isNumber
}

// fill makes the rule that of an ego network. The name of its root stays as the
// events write it: a number in the configuration is the name of a numbered vertex.
func (e *EgoDefinition) fill(rule *graphstore.Rule) error {
	rule.Kind, rule.Hops, rule.MembersMax = graphstore.Ego, e.Hops, e.MembersMax
	switch root := e.Root.(type) {
	case string:
		rule.Root = root
	case uint64:
		rule.Root = strconv.FormatUint(root, 10)
	case json.Number:
		n, err := strconv.ParseUint(root.String(), 10, 64)
		if err != nil {
			return errors.New("ego: root must be the name of a vertex; put a negative number in " +
				"quotes")
		}
		rule.Root = strconv.FormatUint(n, 10)
	default:
		x, ok := numberOf(root)
		if !ok || x < 0 || x != math.Trunc(x) || x > 1<<53 {
			return errors.New("ego: root must be the name of a vertex; put a large number in " +
				"quotes")
		}
		rule.Root = strconv.FormatUint(uint64(x), 10)
	}
	return nil
}

// numberOf reads a number of YAML or JSON.
func numberOf(value any) (float64, bool) {
	switch x := value.(type) {
	case float64:
		return x, true
	case json.Number:
		number, err := x.Float64()
		return number, err == nil
	case uint64:
		return float64(x), true
	case int64:
		return float64(x), true
	}
	return 0, false
}

// parseCommunities reads {"communities": [...]} strictly.
func parseCommunities(
	config json.RawMessage,
) ([]graphstore.Rule, map[string]stats.Selection, error) {
	var wanted struct {
		Communities *[]CommunityDefinition `json:"communities"`
	}
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(&wanted); err != nil {
		return nil, nil, err
	}
	if wanted.Communities == nil {
		return nil, nil, errors.New(
			`want {"communities": [...]}; nothing else can be configured in the log`,
		)
	}
	rules := make([]graphstore.Rule, len(*wanted.Communities))
	selected := map[string]stats.Selection{}
	var errs []error
	for i, definition := range *wanted.Communities {
		rule, err := definition.Rule()
		if by := definition.Selection(); by != stats.ByEdges {
			selected[definition.Name] = by
		}
		rules[i] = rule
		errs = append(errs, err)
	}
	errs = append(errs, checkSelections(selected))
	return rules, selected, errors.Join(errs...)
}
