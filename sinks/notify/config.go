package notify

import (
	"errors"
	"fmt"
	"time"
)

// Config says who is told. Names are unique among targets of one kind.
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
	Timeout    time.Duration          // of an attempt; 0: 10 s
	RetryFor   time.Duration          // since the transition was stored; 0: a day
	MaxAge     time.Duration          // transitions whose log time is older are left out; 0: none is
	Private    bool                   // addresses that are not public are allowed
}

// Alertmanager is the address of an Alertmanager, without /api/v2.
type Alertmanager struct {
	Name        string
	URL         string
	TokenFile   string // file of mode 0600 with a bearer token; empty: none
	Wants       func(rule string) bool
	Timeout     time.Duration // 0: 10 s
	ResendEvery time.Duration // 0: a minute
	Private     bool
}

const (
	retryForDefault    = 24 * time.Hour
	resendEveryDefault = time.Minute
	resendEveryMin     = time.Second
	targetsMax         = 64
)

// WithDefaults returns the webhook with every default filled in.
func (w Webhook) WithDefaults() Webhook {
	if w.Timeout == 0 {
		w.Timeout = timeoutDefault
	}
	if w.RetryFor == 0 {
		w.RetryFor = retryForDefault
	}
	if w.Wants == nil {
		w.Wants = func(string) bool { return true }
	}
	return w
}

// WithDefaults returns the target with every default filled in.
func (m Alertmanager) WithDefaults() Alertmanager {
	if m.Timeout == 0 {
		m.Timeout = timeoutDefault
	}
	if m.ResendEvery == 0 {
		m.ResendEvery = resendEveryDefault
	}
	if m.Wants == nil {
		m.Wants = func(string) bool { return true }
	}
	return m
}

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
	check := func(where, name, address string, private bool, seen map[string]bool, times ...time.Duration) {
		if name == "" || seen[name] || len(name) > 64 {
			errs = append(errs, fmt.Errorf("%s.name: %q is empty, longer than 64 bytes, or given twice", where, name))
		}
		seen[name] = true
		if err := checkURL(address); err != nil {
			errs = append(errs, fmt.Errorf("%s.url: %w", where, err))
		} else if !private && knownPrivate(address) {
			errs = append(errs, fmt.Errorf("%s.url: %w", where, errAddress))
		}
		for _, d := range times {
			if d < 0 {
				errs = append(errs, fmt.Errorf("%s: %v is negative", where, d))
			}
		}
	}
	seen := map[string]bool{}
	for i, w := range c.Webhooks {
		where := fmt.Sprintf("notify.webhooks[%d]", i)
		check(where, w.Name, w.URL, w.Private, seen, w.Timeout, w.RetryFor, w.MaxAge)
		if _, err := parseTemplate(w.Template); err != nil {
			errs = append(errs, fmt.Errorf("%s.template: %w", where, err))
		}
	}
	seen = map[string]bool{}
	for i, m := range c.Alertmanagers {
		where := fmt.Sprintf("notify.alertmanagers[%d]", i)
		check(where, m.Name, m.URL, m.Private, seen, m.Timeout, m.ResendEvery)
		if m.ResendEvery > 0 && m.ResendEvery < resendEveryMin {
			errs = append(errs, fmt.Errorf("%s.resend_every: %v is less than %v", where, m.ResendEvery, resendEveryMin))
		}
	}
	return errors.Join(errs...)
}
