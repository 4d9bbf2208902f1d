package notify

import (
	"errors"
	"fmt"
	"time"
)

// Config lists the targets that are told of alerts. Names are unique among those of one kind.
type Config struct {
	Link          string // where the page is, for links; empty: none
	Webhooks      []Webhook
	Alertmanagers []Alertmanager
}

// Webhook is an address that gets every transition of its rules.
type Webhook struct {
	Name       string
	URL        string
	SecretFile string                 // file of mode 0600 with the key; empty: not signed
	Template   string                 // of the body (text/template), "slack" or "teams"; empty: the transition's JSON
	Wants      func(rule string) bool // nil: every rule
	RetryFor   time.Duration          // since the transition was stored; 0: RetryForDefault
	MaxAge     time.Duration          // transitions whose log time is older are left out; 0: none is
}

// Alertmanager is the address of an Alertmanager, without /api/v2.
type Alertmanager struct {
	Name      string
	URL       string
	TokenFile string                 // file of mode 0600 with a bearer token; empty: none
	Wants     func(rule string) bool // nil: every rule
}

// RetryForDefault is the time after which a transition that a webhook refuses is given up.
const RetryForDefault = 24 * time.Hour

const targetsMax = 64

// Validate reports every violation at once; the files are read by Start.
func (c Config) Validate() error {
	var errs []error
	if n := len(c.Webhooks) + len(c.Alertmanagers); n > targetsMax {
		errs = append(errs, fmt.Errorf("notify: %d targets, at most %d", n, targetsMax))
	}
	if c.Link != "" {
		if err := checkURL(c.Link); err != nil {
			errs = append(errs, fmt.Errorf("notify.link: %w", err))
		}
	}
	check := func(where, name, address string, seen map[string]bool) {
		if name == "" || seen[name] || len(name) > 64 {
			errs = append(errs, fmt.Errorf("%s.name: %q is empty, longer than 64 bytes, or given twice", where, name))
		}
		seen[name] = true
		if err := checkURL(address); err != nil {
			errs = append(errs, fmt.Errorf("%s.url: %w", where, err))
		}
	}
	seen := map[string]bool{}
	for i, w := range c.Webhooks {
		where := fmt.Sprintf("notify.webhooks[%d]", i)
		check(where, w.Name, w.URL, seen)
		if d := min(w.RetryFor, w.MaxAge); d < 0 {
			errs = append(errs, fmt.Errorf("%s: %v is negative", where, d))
		}
		if _, err := parseTemplate(w.Template); err != nil {
			errs = append(errs, fmt.Errorf("%s.template: %w", where, err))
		}
	}
	seen = map[string]bool{}
	for i, m := range c.Alertmanagers {
		check(fmt.Sprintf("notify.alertmanagers[%d]", i), m.Name, m.URL, seen)
	}
	return errors.Join(errs...)
}
