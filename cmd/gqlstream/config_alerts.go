package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"gqlstream/alerts"
	"gqlstream/sinks/notify"
)

// nameList is one name or pattern, or a list of them.
type nameList []string

func (l *nameList) UnmarshalYAML(data []byte) error {
	var one string
	if err := yaml.Unmarshal(data, &one); err == nil {
		*l = nameList{one}
		return nil
	}
	var names []string
	if err := yaml.Unmarshal(data, &names); err != nil {
		return errors.New("want a name, or a list of names")
	}
	*l = names
	return nil
}

// alertConfig is one alert rule; see alerts.Rule.
type alertConfig struct {
	Name        string            `yaml:"name"`
	Communities nameList          `yaml:"communities"`
	Classes     nameList          `yaml:"classes"`
	Method      string            `yaml:"method"`
	When        string            `yaml:"when"`
	Recover     *float64          `yaml:"recover"`
	Over        time.Duration     `yaml:"over"`
	Drift       *float64          `yaml:"drift"`
	Threshold   float64           `yaml:"threshold"`
	Every       time.Duration     `yaml:"every"`
	For         time.Duration     `yaml:"for"`
	AtLeast     int               `yaml:"at_least"`
	Of          int               `yaml:"of"`
	NoData      string            `yaml:"no_data"`
	NoDataAfter time.Duration     `yaml:"no_data_after"`
	Suppress    []string          `yaml:"suppress"`
	Labels      map[string]string `yaml:"labels"`
}

// notifyConfig says who is told of alerts.
type notifyConfig struct {
	Link          string               `yaml:"link"`
	Webhooks      []webhookConfig      `yaml:"webhooks"`
	Alertmanagers []alertmanagerConfig `yaml:"alertmanagers"`
}

type webhookConfig struct {
	Name         string        `yaml:"name"`
	URL          string        `yaml:"url"`
	SecretFile   string        `yaml:"secret_file"`
	Rules        nameList      `yaml:"rules"`
	Timeout      time.Duration `yaml:"timeout"`
	RetryFor     time.Duration `yaml:"retry_for"`
	MaxAge       time.Duration `yaml:"max_age"`
	AllowPrivate bool          `yaml:"allow_private"`
}

type alertmanagerConfig struct {
	Name         string        `yaml:"name"`
	URL          string        `yaml:"url"`
	TokenFile    string        `yaml:"token_file"`
	Rules        nameList      `yaml:"rules"`
	Timeout      time.Duration `yaml:"timeout"`
	ResendEvery  time.Duration `yaml:"resend_every"`
	AllowPrivate bool          `yaml:"allow_private"`
}

// rule returns the rule as the engine wants it.
func (a alertConfig) rule() (alerts.Rule, error) {
	r := alerts.Rule{
		Name: a.Name, Communities: a.Communities, Classes: a.Classes, Method: a.Method, Recover: a.Recover,
		Over: a.Over, Drift: -1, Threshold: a.Threshold, Every: a.Every, For: a.For, AtLeast: a.AtLeast, Of: a.Of,
		NoData: alerts.NoData(a.NoData), NoDataAfter: a.NoDataAfter, Suppress: a.Suppress, Labels: a.Labels,
	}
	var errs []error
	if a.Drift != nil {
		if r.Drift = *a.Drift; r.Drift < 0 {
			errs = append(errs, fmt.Errorf("drift: %v is negative", r.Drift))
		}
	}
	if a.When != "" {
		var err error
		if r.When, err = alerts.ParseCondition(a.When); err != nil {
			errs = append(errs, fmt.Errorf("when: %w", err))
			r.When = alerts.Condition{Quantity: alerts.Point} // the rest is checked all the same
		}
	}
	return r, errors.Join(errs...)
}

// alerts returns the alert rules, with every violation reported.
func (c fileConfig) alerts() (alerts.Config, error) {
	out := alerts.Config{Pipeline: c.Pipeline, Classes: c.Classes}
	for _, e := range c.Estimates {
		options, _ := e.options() // core reports what is wrong with it
		out.Methods = append(out.Methods, string(options.Method))
	}
	if len(out.Methods) == 0 {
		options, _ := estimateConfig{}.options()
		out.Methods = []string{string(options.Method)}
	}
	var errs []error
	for i, a := range c.Alerts {
		rule, err := a.rule()
		if err != nil {
			errs = append(errs, fmt.Errorf("alerts[%d] %q: %w", i, a.Name, err))
		}
		out.Rules = append(out.Rules, rule)
	}
	return out, errors.Join(append(errs, out.Validate())...)
}

// notify returns who is told, with every violation reported.
func (c fileConfig) notify() (notify.Config, error) {
	out := notify.Config{Link: c.Notify.Link}
	var errs []error
	wants := func(where string, patterns nameList) func(string) bool {
		for _, p := range patterns {
			if !slices.ContainsFunc(c.Alerts, func(a alertConfig) bool { return alerts.Matches(p, a.Name) }) {
				errs = append(errs, fmt.Errorf("%s.rules: no alert is named %q", where, p))
			}
		}
		return func(rule string) bool {
			return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return alerts.Matches(p, rule) })
		}
	}
	for i, w := range c.Notify.Webhooks {
		out.Webhooks = append(out.Webhooks, notify.Webhook{
			Name: w.Name, URL: w.URL, SecretFile: w.SecretFile, Timeout: w.Timeout, RetryFor: w.RetryFor,
			MaxAge: w.MaxAge, Private: w.AllowPrivate, Wants: wants(fmt.Sprintf("notify.webhooks[%d]", i), w.Rules),
		})
	}
	for i, m := range c.Notify.Alertmanagers {
		out.Alertmanagers = append(out.Alertmanagers, notify.Alertmanager{
			Name: m.Name, URL: m.URL, TokenFile: m.TokenFile, Timeout: m.Timeout, ResendEvery: m.ResendEvery,
			Private: m.AllowPrivate, Wants: wants(fmt.Sprintf("notify.alertmanagers[%d]", i), m.Rules),
		})
	}
	return out, errors.Join(append(errs, out.Validate())...)
}

// effectiveAlerts fills in the defaults of the rules, as check prints them.
func (c *fileConfig) effectiveAlerts(rules []alerts.Rule) {
	for i, r := range rules {
		r = r.WithDefaults()
		a := &c.Alerts[i]
		a.When, a.Communities, a.Classes = r.When.String(), r.Communities, r.Classes
		a.Threshold, a.Every, a.NoData, a.Suppress = r.Threshold, r.Every, string(r.NoData), r.Suppress
		if r.When.Quantity == alerts.CUSUM {
			a.Drift = &r.Drift
		}
	}
}
