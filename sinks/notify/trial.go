package notify

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"gqlstream/alerts"
)

// sampleAlert is the transition that a trial tells: a rule, a community and a class that
// nobody can take for real ones.
func sampleAlert(at time.Time) alerts.Transition {
	text := at.UTC().Format(time.RFC3339Nano)
	return alerts.Transition{
		ID: "trial-" + text, Alert: "gqlstream-trial", Rule: "gqlstream-trial", Community: "trial", Class: "trial", State: alerts.Firing,
		Time: text, Since: text, Reason: "this is a trial of gqlstream; no community is concerned",
		Point: 0.5, Low: 0.4, High: 0.6,
	}
}

// Outcome is the answer of one target to a trial.
type Outcome struct {
	Name string // webhook/NAME or alertmanager/NAME
	Err  error  // nil: it was taken
}

// Trial sends every target one sample, whatever rules it wants, and returns the outcomes.
// Alertmanager gets an alert that ends by itself.
func Trial(ctx context.Context, c Config) ([]Outcome, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	now := time.Now()
	sample := sampleAlert(now)
	var out []Outcome
	for _, w := range c.Webhooks {
		h, err := newHook(w, c.Link, slog.New(slog.DiscardHandler))
		if err == nil {
			data, _ := json.Marshal(sample) // plain fields cannot fail
			err = h.send(ctx, &sample, now, data)
			h.client.CloseIdleConnections()
		}
		out = append(out, Outcome{"webhook/" + w.Name, err})
	}
	for _, m := range c.Alertmanagers {
		m.Wants = nil
		opened, err := openManager(m, c.Link, slog.New(slog.DiscardHandler))
		if err == nil {
			opened.tell([]alerts.Transition{sample}, now)
			err = opened.post(ctx)
			opened.client.CloseIdleConnections()
		}
		out = append(out, Outcome{"alertmanager/" + m.Name, err})
	}
	return out, nil
}
