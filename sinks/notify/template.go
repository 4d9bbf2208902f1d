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

	"gqlstream/alerts"
)

// bodyBytesMax bounds what a template makes of a transition.
const bodyBytesMax = 64 << 10

// templates are the bodies that a name stands for.
var templates = map[string]string{
	"slack": `{"text": {{json (print .Mark " *" .Rule "* " .State ": " .Class " of " .Community " is " (percent .Point) ` +
		`" (" (percent .Low) " to " (percent .High) ")\n" .Reason "\n" .Link)}}}`,
	"teams": `{"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": {` +
		`"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": [` +
		`{"type": "TextBlock", "weight": "bolder", "wrap": true, "text": {{json (print .Mark " " .Rule " " .State)}}}, ` +
		`{"type": "TextBlock", "wrap": true, "text": {{json (print .Class " of " .Community " is " (percent .Point) ` +
		`" (" (percent .Low) " to " (percent .High) "). " .Reason)}}}]` +
		`{{if .Link}}, "actions": [{"type": "Action.OpenUrl", "title": "Open", "url": {{json .Link}}}]{{end}}}}]}`,
}

// content is the data of a template: the fields of the transition and two more.
type content struct {
	alerts.Transition
	Link string // of the community's page; empty where Config.Link is
	Mark string // a sign for firing or resolved
}

// bodyTemplate writes the body of a webhook; nil writes the transition's JSON.
type bodyTemplate struct {
	parsed *template.Template
	json   bool // what it makes is JSON
}

// parseTemplate reads a template, or the name of one, and tries it.
func parseTemplate(text string) (*bodyTemplate, error) {
	if text == "" {
		return nil, nil
	}
	if known, ok := templates[text]; ok {
		text = known
	}
	parsed, err := template.New("template").Option("missingkey=error").Funcs(template.FuncMap{
		"json": toJSON, "percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	b := &bodyTemplate{parsed: parsed}
	sample := sampleAlert(time.Unix(0, 0))
	sample.Community, sample.Reason = "\"quoted\"\n", "\\ <b>"
	body, err := b.execute(&sample, "https://example.org")
	if err != nil {
		return nil, err
	}
	if b.json = json.Valid(body); !b.json && strings.HasPrefix(strings.TrimSpace(text), "{\"") {
		return nil, fmt.Errorf("with a name that has quotes it makes %.200q, which is not JSON: write {{json .Community}} where {{.Community}} is", body)
	}
	return b, nil
}

// toJSON writes a value as JSON, strings with their quotes.
func toJSON(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSpace(out.String()), err
}

// execute writes the body of a transition.
func (b *bodyTemplate) execute(t *alerts.Transition, link string) ([]byte, error) {
	c := content{Transition: *t, Mark: "🔔"}
	if t.State == alerts.Resolved {
		c.Mark = "✅"
	}
	if link != "" {
		c.Link = pageOf(link, t.Community)
	}
	var out bytes.Buffer
	if err := b.parsed.Execute(&out, c); err != nil {
		return nil, err
	}
	if out.Len() > bodyBytesMax {
		return nil, errors.New("the template makes more than 64 KiB")
	}
	return out.Bytes(), nil
}

// pageOf is the address of a community's page.
func pageOf(link, community string) string {
	return strings.TrimSuffix(link, "/") + "/#/c/" + url.PathEscape(community)
}

// contentType returns the content type of the body that the template makes.
func (b *bodyTemplate) contentType() string {
	if b == nil || b.json {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
