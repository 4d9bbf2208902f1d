package graphstore

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// RuleKind says how a community gets its members.
type RuleKind uint8

const (
	// Explicit communities have the members that events name. The default.
	Explicit RuleKind = iota
	// ByAttribute communities hold the vertices with the value Value of the attribute Key.
	ByAttribute
	// Everyone is the community of every vertex, once each.
	Everyone
	// ByExpression communities hold the vertices that satisfy Expression.
	ByExpression
	// Ego communities hold the vertices within Hops of Root, Root included. They are empty while
	// Root does not exist. If more than MembersMax vertices are within Hops, the community holds
	// those within the largest number of hops that fits, see View.Hops.
	Ego
)

// Rule defines one tracked community. It is comparable.
type Rule struct {
	Name  string
	Kind  RuleKind
	Key   string      // ByAttribute only
	Value event.Value // ByAttribute only; not null

	Expression string `json:",omitempty"` // ByExpression only; see package rule
	Root       string `json:",omitempty"` // Ego only: the name of a vertex
	Hops       int    `json:",omitempty"` // Ego only: 1 to egoHopsMax
	MembersMax int    `json:",omitempty"` // Ego only; 0 is egoMembersMaxDefault
}

// String describes the rule in words; it is empty for an explicit community.
func (r Rule) String() string {
	switch r.Kind {
	case ByAttribute:
		switch r.Value.Kind {
		case event.StringValue:
			return fmt.Sprintf("%s == %q", r.Key, r.Value.Text)
		case event.BoolValue:
			return fmt.Sprintf("%s == %t", r.Key, r.Value.Number != 0)
		}
		return fmt.Sprintf("%s == %g", r.Key, r.Value.Number)
	case Everyone:
		return "every vertex"
	case ByExpression:
		return r.Expression
	case Ego:
		if r.Hops == 1 {
			return fmt.Sprintf("within 1 hop of %s", r.Root)
		}
		return fmt.Sprintf("within %d hops of %s", r.Hops, r.Root)
	}
	return ""
}

// Limits of ego networks. All together may have egoMembersLimit members at most,
// by their MembersMax.
const (
	egoHopsMax           = 3
	egoMembersMaxDefault = 100_000
	egoMembersLimit      = membershipsMax / 2
)

// ruleStepsMax bounds the steps, of about ten nanoseconds, that evaluating all rules
// together may take, and with them the time that one vertex event may take.
const ruleStepsMax = 4 << 20

// egoMembersMax returns the bound on the members of an ego network.
func (r Rule) egoMembersMax() int {
	if r.Kind != Ego {
		return 0
	}
	return cmp.Or(r.MembersMax, egoMembersMaxDefault)
}

// validateRules reports every violation of the rules, each by itself and all together.
func validateRules(rules []Rule) error {
	var errs []error
	seen := make(map[string]bool, len(rules))
	members, steps := 0, 0
	for i, r := range rules {
		if r.Name == "" {
			errs = append(errs, fmt.Errorf("community %d has no name", i))
		} else if seen[r.Name] {
			errs = append(errs, fmt.Errorf("community %q is defined twice", r.Name))
		}
		seen[r.Name] = true
		cost, err := r.validate()
		if steps += cost; steps > ruleStepsMax && steps-cost <= ruleStepsMax {
			errs = append(errs, fmt.Errorf(
				"community %q raises the steps of evaluating all rules to %d, at most %d are "+
					"allowed",
				r.Name, steps, ruleStepsMax))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("community %q %w", r.Name, err))
		} else if members += r.egoMembersMax(); members > egoMembersLimit {
			errs = append(errs, fmt.Errorf("community %q raises the members of all ego networks "+
				"to %d, at most %d are allowed",
				r.Name, members, egoMembersLimit))
			members = 0
		}
	}
	return errors.Join(errs...)
}

// validate returns the error of a rule, phrased to follow the rule's name, and a bound on the steps
// of evaluating its expression.
func (r Rule) validate() (steps int, err error) {
	switch {
	case r.Kind > Ego:
		return 0, fmt.Errorf("has the unknown rule %d", r.Kind)
	case r.Kind != ByAttribute && (r.Key != "" || r.Value != event.Value{}):
		return 0, errors.New("has an attribute and is not defined by it")
	case math.IsNaN(r.Value.Number) || math.IsInf(r.Value.Number, 0):
		return 0, errors.New("asks for a number that is not finite")
	case r.Kind == ByAttribute && (r.Key == "" || r.Value.Kind == event.NullValue):
		return 0, errors.New("needs an attribute key and a value")
	case r.Kind != ByExpression && r.Expression != "":
		return 0, errors.New("has an expression and is not defined by it")
	case r.Kind != Ego && (r.Root != "" || r.Hops != 0 || r.MembersMax != 0):
		return 0, errors.New("has a root and is no ego network")
	case r.Kind == Ego:
		return 0, r.validateEgo()
	case r.Kind == ByExpression:
		program, err := rule.Compile(r.Expression)
		if err != nil {
			return 0, fmt.Errorf("has a rule that cannot be used: %w", err)
		}
		return program.Steps(), nil
	}
	return 0, nil
}

// validateEgo returns an error if the bounds of an ego network are out of range.
func (r Rule) validateEgo() error {
	switch {
	case r.Root == "":
		return errors.New("is an ego network and names no root")
	case len(r.Root) > IDBytesMax:
		return fmt.Errorf("has a root whose name is longer than %d bytes", IDBytesMax)
	case r.Hops < 1 || r.Hops > egoHopsMax:
		return fmt.Errorf("is an ego network of %d hops, want 1 to %d", r.Hops, egoHopsMax)
	case r.MembersMax < 0 || r.MembersMax > egoMembersLimit:
		return fmt.Errorf("is an ego network of at most %d members, want 1 to %d",
			r.MembersMax, egoMembersLimit)
	}
	return nil
}
