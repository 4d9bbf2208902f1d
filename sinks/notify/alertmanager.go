package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
)

// Timing of posts to an Alertmanager.
const (
	resolvedKept  = 15 * time.Minute // how long an ended alert is posted again
	resendEvery   = time.Minute
	endsAfter     = 4   // Alertmanager drops an alert after this many resendEvery without a post
	batchMax      = 500 // alerts in a request
	labelBytesMax = 1024
	amRetryWait   = 5 * time.Second
)

// posted is an alert in the form of POST /api/v2/alerts.
type posted struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// told is a firing alert, as it began, or one that ended recently, as it ended.
type posting struct {
	alerts.Transition
	ended time.Time // by the wall clock; zero: it fires
}

// manager posts the firing alerts to one Alertmanager. Its goroutine owns it, except for the fields
// guarded by mu and by target.
type manager struct {
	config Alertmanager
	token  string
	wake   chan struct{} // capacity 1
	away   bool          // the last attempt failed
	target

	resendEvery time.Duration
	postings    map[string]posting // by alert; guarded by mu
}

func openManager(m Alertmanager, link string, log *slog.Logger) (*manager, error) {
	out := &manager{
		config: m, wake: make(chan struct{}, 1), resendEvery: resendEvery,
		postings: map[string]posting{},
		target:   target{name: "alertmanager/" + m.Name, link: link, client: newClient(), log: log},
	}
	if m.TokenFile != "" {
		token, err := sinks.ReadSecret(m.TokenFile, secretBytesMin)
		if err != nil {
			return nil, fmt.Errorf("notify: alertmanager %s: token: %w", m.Name, err)
		}
		out.token = string(token)
	}
	return out, nil
}

// set replaces the list of firing alerts. Alerts that have begun or ended since the last call are
// posted at once. An ended alert is posted with its end.
func (m *manager) set(active []alerts.Alert, ended []alerts.Transition, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed, fires := false, map[string]bool{}
	for _, a := range active {
		if a.State == alerts.Firing && (len(m.config.Rules) == 0 || m.config.Rules.Match(a.Rule)) {
			before, known := m.postings[a.Alert]
			changed = changed || !known || !before.ended.IsZero()
			m.postings[a.Alert] = posting{Transition: a.Transition}
			fires[a.Alert] = true
		}
	}
	ends := map[string]*alerts.Transition{}
	for i := range ended {
		ends[ended[i].Alert] = &ended[i]
	}
	for key, a := range m.postings {
		if a.ended.IsZero() && !fires[key] {
			if end := ends[key]; end != nil {
				a.Transition = *end
			}
			changed, m.postings[key] = true, posting{a.Transition, now}
		}
	}
	m.depth.Store(uint64(len(m.postings)))
	if changed {
		select {
		case m.wake <- struct{}{}:
		default: // a wake-up is pending
		}
	}
}

// due returns the alerts to post, and removes alerts that ended long ago.
func (m *manager) due(now time.Time) (out []posted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, a := range m.postings {
		ends := cmp.Or(a.ended, now.Add(endsAfter*m.resendEvery))
		if now.Sub(ends) > resolvedKept {
			delete(m.postings, key)
			continue
		}
		out = append(out, m.describe(&a.Transition, now, ends))
	}
	m.depth.Store(uint64(len(m.postings)))
	return out
}

// describe converts an alert for Alertmanager. Labels identify it and stay the same while it fires;
// annotations describe the transition as for every other target.
func (m *manager) describe(t *alerts.Transition, at, ends time.Time) posted {
	labels := map[string]string{}
	maps.Copy(labels, t.Labels)
	for key, value := range map[string]string{
		"alertname": t.Rule, "rule": t.Rule, "community": t.Community, "class": t.Class,
		"method": t.Method, "pipeline": t.Pipeline,
	} {
		if value != "" { // Alertmanager refuses empty values
			labels[key] = clean(value)
		}
	}
	out := posted{
		Labels: labels, StartsAt: at, EndsAt: ends,
		Annotations: map[string]string{"id": t.ID, "position": fmt.Sprint(t.Position)},
	}
	for key, value := range map[string]string{
		"summary": t.Rule + ": " + t.Text, "reason": t.Reason, "share": t.ShareText(),
		"interval": t.IntervalText(), "change": t.ChangeText(), "end": string(t.End),
	} {
		if value != "" {
			out.Annotations[key] = clean(value)
		}
	}
	if since, err := time.Parse(time.RFC3339Nano, t.Since); err == nil && since.Before(ends) {
		// a log ahead of the clock would otherwise end the alert before its start
		out.StartsAt = since
	}
	if out.StartsAt.After(ends) {
		out.StartsAt = ends
	}
	if m.link != "" {
		out.GeneratorURL = pageOf(m.link, t.Community)
	}
	return out
}

// clean makes a text valid as a label.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > labelBytesMax {
		text = strings.ToValidUTF8(text[:labelBytesMax], "")
	}
	return text
}

// run posts until ctx ends.
func (m *manager) run(ctx context.Context) {
	wait := time.NewTimer(m.resendEvery)
	defer wait.Stop()
	for {
		select {
		case <-m.wake:
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		again := m.resendEvery
		if m.post(ctx) != nil {
			again = min(again, amRetryWait)
		}
		wait.Reset(again)
	}
}

// post posts everything once.
func (m *manager) post(ctx context.Context) error {
	list := m.due(time.Now())
	for len(list) > 0 {
		n := min(len(list), batchMax)
		body, err := json.Marshal(list[:n])
		if err == nil {
			header := http.Header{"Content-Type": {"application/json"}}
			if m.token != "" {
				header.Set("Authorization", "Bearer "+m.token)
			}
			err = post(ctx, m.client, strings.TrimSuffix(m.config.URL, "/")+"/api/v2/alerts",
				header, body)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			m.count(outcomeFailed, err)
			if !m.away { // log it once: every change of alerts is another attempt
				m.log.Warn("alertmanager: does not answer; the request is repeated",
					"alertmanager", m.config.Name, "error", err)
			}
			m.away = true
			return err
		}
		if m.away {
			m.log.Info("alertmanager: answers again", "alertmanager", m.config.Name)
		}
		m.away = false
		m.count(outcomeDelivered, nil)
		list = list[n:]
	}
	return nil
}
