package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"

	"gqlstream/sinks/alerts"
)

// Config lists the targets that are told of alerts. Names are unique among those of one kind.
type Config struct {
	Link          string         `yaml:"link"` // where the page is, for links; empty: none
	Webhooks      []Webhook      `yaml:"webhooks"`
	Alertmanagers []Alertmanager `yaml:"alertmanagers"`
}

// Webhook is an address that gets every transition of its rules.
type Webhook struct {
	Name       string `yaml:"name"`
	URL        string `yaml:"url"`
	SecretFile string `yaml:"secret_file"` // with the key; empty: not signed
	// of the body (text/template), "slack" or "teams"; empty: the transition's JSON
	Template string          `yaml:"template"`
	Rules    alerts.Patterns `yaml:"rules"` // none: every rule
	// since the transition was stored; 0: RetryForDefault
	RetryFor time.Duration `yaml:"retry_for"`
	// transitions of an older log time are left out; 0: none is
	MaxAge time.Duration `yaml:"max_age"`
}

// Alertmanager is the address of an Alertmanager, without /api/v2.
type Alertmanager struct {
	Name      string          `yaml:"name"`
	URL       string          `yaml:"url"`
	TokenFile string          `yaml:"token_file"` // with a bearer token; empty: none
	Rules     alerts.Patterns `yaml:"rules"`      // none: every rule
}

// RetryForDefault is the time after which a transition that a webhook refuses is given up.
const RetryForDefault = 24 * time.Hour

const targetsMax = 64

// Validate reports every violation at once, the files aside.
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
			errs = append(errs, fmt.Errorf(
				"%s.name: %q is empty, longer than 64 bytes, or given twice",
				where, name))
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

// bodyBytesMax bounds the text that a template makes of a transition.
const bodyBytesMax = 64 << 10

// templates are the bodies that a name stands for.
var templates = map[string]string{
	"slack": `{"text": {{json (print .Mark " *" .Rule "* " .State ": " .Text "\n" .Link)}}}`,
	"teams": `{"type": "message", "attachments": [{` +
		`"contentType": "application/vnd.microsoft.card.adaptive", "content": {` +
		`"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", ` +
		`"type": "AdaptiveCard", "version": "1.4", "body": [` +
		`{"type": "TextBlock", "weight": "bolder", "wrap": true, ` +
		`"text": {{json (print .Mark " " .Rule " " .State)}}}, ` +
		`{"type": "TextBlock", "wrap": true, "text": {{json .Text}}}]` +
		`{{if .Link}}, "actions": [{"type": "Action.OpenUrl", "title": "Open", ` +
		`"url": {{json .Link}}}]{{end}}}}]}`,
}

// content is the data of a template: the fields of the transition and two more.
type content struct {
	alerts.Transition
	Link string // of the community's page; empty where Config.Link is
	Mark string // a sign: it rings, it is back, or it ended for another reason
}

// parseTemplate reads a template of the body of a webhook, or the name of one, and tries it. None
// is nil.
func parseTemplate(text string) (*template.Template, error) {
	if text == "" {
		return nil, nil
	}
	if known, ok := templates[text]; ok {
		text = known
	}
	parsed, err := template.New("template").Option("missingkey=error").Funcs(
		boundedFunctions).Funcs(template.FuncMap{
		"percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
		"json": func(v any) (string, error) {
			data, err := alerts.PlainJSON(v)
			return string(data), err
		},
	}).Parse(text)
	if err == nil {
		err = checkTree(parsed)
	}
	if err != nil {
		return nil, err
	}
	sample := sampleAlert(time.Unix(0, 0))
	sample.Community = "\"quoted\"\n"
	sample.Reason = "\\ <b>"
	sample.Text = "\\ <b>"
	body, err := execute(parsed, &sample, "https://example.org")
	if err != nil {
		return nil, err
	}
	if !json.Valid(body) && strings.HasPrefix(strings.TrimSpace(text), "{\"") {
		return nil, fmt.Errorf(
			"with a name that has quotes it makes %.200q, which is not JSON: write {{json "+
				".Community}} where {{.Community}} is",
			body)
	}
	return parsed, nil
}

// execute writes the body of a transition.
func execute(body *template.Template, t *alerts.Transition, link string) ([]byte, error) {
	c := content{Transition: *t, Mark: "🔔"}
	switch {
	case t.State == alerts.Resolved && t.End == alerts.EndBack:
		c.Mark = "✅"
	case t.State == alerts.Resolved: // the share need not be where it was
		c.Mark = "🔕"
	}
	if link != "" {
		c.Link = pageOf(link, t.Community)
	}
	var out boundedBuffer
	if err := body.Execute(&out, c); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// boundedBuffer ends a template that makes too much while it makes it: a loop in it would otherwise
// take all memory.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(data []byte) (int, error) {
	if b.Len()+len(data) > bodyBytesMax {
		return 0, errTooMuch
	}
	return b.Buffer.Write(data)
}

// pageOf is the address of a community's page.
func pageOf(link, community string) string {
	return strings.TrimSuffix(link, "/") + "/#/c/" + url.PathEscape(community)
}
