package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"gqlstream/sinks/alerts"
	"gqlstream/sinks/notify"
)

// Alerts are the rules, and the budget of false alarms for rules without a threshold.
type Alerts struct {
	Budget string  `yaml:"budget"`
	Rules  []Alert `yaml:"rules"`
}

// UnmarshalYAML reads a mapping, or a list of rules.
func (a *Alerts) UnmarshalYAML(node ast.Node) error {
	type plain Alerts // without this method
	switch list, is := node.(*ast.SequenceNode); {
	case is:
		return yaml.NodeToValue(list, &a.Rules)
	default:
		return yaml.NodeToValue(node, (*plain)(a))
	}
}

// Alert is one alert rule; see alerts.Rule.
type Alert struct {
	Name        string            `yaml:"name"`
	Communities alerts.Patterns   `yaml:"communities"`
	Classes     alerts.Patterns   `yaml:"classes"`
	Method      string            `yaml:"method"`
	When        string            `yaml:"when"`
	Recover     *float64          `yaml:"recover"`
	Every       time.Duration     `yaml:"every"`
	For         time.Duration     `yaml:"for"`
	NoData      string            `yaml:"no_data"` // also "alert after 10m"
	Suppress    []string          `yaml:"suppress"`
	Labels      map[string]string `yaml:"labels"`
}

// rule converts the rule for the engine of alerts.
func (a Alert) rule() (r alerts.Rule, err error) {
	r = alerts.Rule{
		Name:        a.Name,
		Communities: a.Communities,
		Classes:     a.Classes,
		Method:      a.Method,
		Recover:     a.Recover,
		Drift:       -1,
		Every:       a.Every,
		For:         a.For,
		Suppress:    a.Suppress,
		Labels:      a.Labels,
	}
	var errs []error
	noData, after, _ := strings.Cut(a.NoData, " after ")
	r.NoData = alerts.NoData(noData)
	if a.When != "" {
		if err := r.ParseWhen(a.When); err != nil {
			errs = append(errs, fmt.Errorf("when: %w", err))
			r.When = alerts.Condition{Quantity: alerts.Point} // so that the rest is checked as well
		}
	}
	if r.NoDataAfter, err = time.ParseDuration(cmp.Or(after, "0s")); err != nil {
		errs = append(errs,
			fmt.Errorf("no_data: %q: want a duration such as alert after 10m", after))
	}
	return r, errors.Join(errs...)
}

// AlertRules returns the alert rules, with every violation reported.
func (c Settings) AlertRules() (alerts.Config, error) {
	out := alerts.Config{Pipeline: c.Pipeline, Classes: c.Classes, Display: c.Display}
	estimates := c.Estimates
	if len(estimates) == 0 {
		estimates = []Estimate{{}}
	}
	for _, e := range estimates {
		options, _ := e.options() // core reports their mistakes
		out.Methods = append(out.Methods, string(options.Method))
	}
	var errs []error
	if c.Alerts.Budget != "" {
		var err error
		if out.Budget, err = alerts.ParseBudget(c.Alerts.Budget); err != nil {
			errs = append(errs, fmt.Errorf("alerts.budget: %w", err))
		}
	}
	for i, a := range c.Alerts.Rules {
		rule, err := a.rule()
		if err != nil {
			errs = append(errs, fmt.Errorf("alerts.rules[%d] %q: %w", i, a.Name, err))
		}
		out.Rules = append(out.Rules, rule)
	}
	return out, errors.Join(append(errs, out.Validate())...)
}

// NotifyTargets returns the receivers of alerts, with every violation reported.
func (c Settings) NotifyTargets() (notify.Config, error) {
	var errs []error
	check := func(where string, i int, patterns alerts.Patterns) {
		for _, p := range patterns {
			if !slices.ContainsFunc(c.Alerts.Rules,
				func(a Alert) bool { return alerts.Matches(p, a.Name) }) {
				errs = append(errs,
					fmt.Errorf("notify.%s[%d].rules: no alert is named %q", where, i, p))
			}
		}
	}
	for i, w := range c.Notify.Webhooks {
		check("webhooks", i, w.Rules)
	}
	for i, m := range c.Notify.Alertmanagers {
		check("alertmanagers", i, m.Rules)
	}
	return c.Notify, errors.Join(append(errs, c.Notify.Validate())...)
}

// FillAlertDefaults fills in the defaults of rules and targets, as check prints them.
func (c *Settings) FillAlertDefaults(rules []alerts.Rule, targets notify.Config) {
	for i, w := range targets.Webhooks {
		c.Notify.Webhooks[i].RetryFor = cmp.Or(w.RetryFor, notify.RetryForDefault)
	}
	for i, r := range rules {
		r = r.WithDefaults()
		a := &c.Alerts.Rules[i]
		a.Communities, a.Classes = r.Communities, r.Classes
		a.Method = cmp.Or(a.Method, c.Estimates[0].Method)
		if !r.When.Budgeted || r.When.Quantity == alerts.CUSUM {
			a.Recover = cmp.Or(a.Recover, &r.When.Value) // 0 of cusum
		}
		a.Every, a.NoData, a.Suppress = r.Every, cmp.Or(a.NoData, string(r.NoData)), r.Suppress
		if r.Threshold > 0 { // of a CUSUM
			a.When = fmt.Sprintf("%s drift %g > %g", r.When, r.Drift, r.Threshold)
		}
	}
	if len(rules) > 0 {
		c.Alerts.Budget = cmp.Or(c.Alerts.Budget, alerts.BudgetDefault.String())
	}
}
