package notify

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/alerts"
	"gqlstream/request"
	"gqlstream/sinks"
)

// Headers of a webhook, as the Standard Webhooks specification names them.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// Pauses of a webhook.
const (
	retryWaitMin = time.Second
	retryWaitMax = 5 * time.Minute
	fetchWaitMax = time.Second // and so long a stop may go unnoticed
	fetchWaitMin = 200 * time.Millisecond
	brokenWait   = time.Second // after an error of the broker
	ackWaitExtra = 30 * time.Second
)

// hook delivers to one webhook. Its goroutine owns it but for what target guards.
type hook struct {
	config   Webhook
	secret   []byte
	template *bodyTemplate // nil: the transition as it is stored
	consumer jetstream.Consumer
	target
}

// signature returns the signature of a body: "v1," and the base64 form of HMAC-SHA256
// over id, Unix seconds and body with dots between.
func signature(secret []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// newHook returns a hook that has no queue yet.
func newHook(w Webhook, link string, log *slog.Logger) (h *hook, err error) {
	w.RetryFor = cmp.Or(w.RetryFor, RetryForDefault)
	h = &hook{config: w, target: target{name: "webhook/" + w.Name, link: link, client: newClient(), log: log}}
	if w.SecretFile != "" {
		if h.secret, err = sinks.ReadSecret(w.SecretFile, secretBytesMin); err != nil {
			return nil, fmt.Errorf("notify: webhook %s: secret: %w", w.Name, err)
		}
	}
	if h.template, err = parseTemplate(w.Template); err != nil {
		return nil, fmt.Errorf("notify: webhook %s: template: %w", w.Name, err)
	}
	return h, nil
}

// openHook makes the consumer, or takes up the one that is there.
func openHook(ctx context.Context, stream jetstream.Stream, w Webhook, link string, log *slog.Logger) (*hook, error) {
	h, err := newHook(w, link, log)
	if err != nil {
		return nil, err
	}
	config := jetstream.ConsumerConfig{
		Durable: consumerName(w.Name), Description: "gqlstream: webhook " + w.Name,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: attemptMax + ackWaitExtra, MaxAckPending: 1,
	}
	h.consumer, err = stream.Consumer(ctx, config.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		config.DeliverPolicy = jetstream.DeliverNewPolicy // a new target is not told of what was before it
		h.consumer, err = stream.CreateConsumer(ctx, config)
	}
	if err != nil {
		return nil, fmt.Errorf("notify: webhook %s: %w", w.Name, err)
	}
	return h, nil
}

// run delivers until ctx ends, or until there is nothing left once stop is closed.
func (h *hook) run(ctx context.Context, stop <-chan struct{}) {
	for ctx.Err() == nil {
		closing, wait := false, fetchWaitMax
		select {
		case <-stop: // deliver only the transitions that wait already
			closing, wait = true, fetchWaitMin
		default:
		}
		message, err := h.consumer.Next(jetstream.FetchMaxWait(wait))
		switch {
		case err == nil:
			h.reads(nil)
			h.deliver(ctx, message)
		case closing:
			return
		case errors.Is(err, jetstream.ErrNoMessages) || errors.Is(err, nats.ErrTimeout):
			h.reads(nil)
		default:
			if h.reads(err) {
				h.log.Warn("webhook: its queue cannot be read", "webhook", h.config.Name, "error", err)
			}
			_ = request.Pause(ctx, brokenWait)
		}
		if info, err := h.consumer.Info(ctx); err == nil {
			h.depth.Store(info.NumPending + uint64(info.NumAckPending)) // how much there is to do
		}
	}
}

// deliver makes one attempt, and says to the broker what has become of the message.
func (h *hook) deliver(ctx context.Context, m jetstream.Msg) {
	var t alerts.Transition
	meta, err := m.Metadata()
	if err == nil {
		err = json.Unmarshal(m.Data(), &t)
	}
	now := time.Now()
	switch {
	case err != nil:
		h.drop(m, "", err)
		return
	case len(h.config.Rules) > 0 && !h.config.Rules.Match(t.Rule):
		_ = m.Ack()
		return
	case h.tooOld(&t, now):
		h.count(outcomeSkipped, nil)
		_ = m.Ack()
		return
	}
	err = h.send(ctx, &t, now, m.Data())
	switch {
	case err == nil:
		h.count(outcomeDelivered, nil)
		// The next measurement of the queue would still count it until the broker has the
		// acknowledgement. If that is lost, the receiver gets the message twice, with one id.
		acknowledging, cancel := context.WithTimeout(ctx, ackWaitMax)
		_ = m.DoubleAck(acknowledging)
		cancel()
	case ctx.Err() != nil:
		_ = m.Nak()
	case now.Sub(meta.Timestamp) > h.config.RetryFor:
		h.drop(m, t.ID, err)
	default:
		h.count(outcomeFailed, err)
		h.log.Warn("webhook: will be tried again", "webhook", h.config.Name, "id", t.ID, "try", meta.NumDelivered, "error", err)
		_ = m.NakWithDelay(min(retryWaitMax, retryWaitMin<<min(max(meta.NumDelivered, 1)-1, 20)))
	}
}

// ackWaitMax bounds how long the broker may take to say that it has an acknowledgement.
const ackWaitMax = 5 * time.Second

// send makes one signed request about a transition, of which data is the JSON.
func (h *hook) send(ctx context.Context, t *alerts.Transition, at time.Time, data []byte) (err error) {
	if h.template != nil {
		if data, err = h.template.execute(t, h.link); err != nil {
			return fmt.Errorf("template: %w", err)
		}
	}
	header := http.Header{}
	header.Set("Content-Type", h.template.contentType())
	header.Set(headerID, t.ID)
	header.Set(headerTimestamp, strconv.FormatInt(at.Unix(), 10))
	if h.secret != nil {
		header.Set(headerSignature, signature(h.secret, t.ID, at, data))
	}
	return post(ctx, h.client, h.config.URL, header, data)
}

// drop gives a message up.
func (h *hook) drop(m jetstream.Msg, id string, err error) {
	h.count(outcomeDropped, err)
	h.log.Error("webhook: given up", "webhook", h.config.Name, "id", id, "error", err)
	_ = m.Term()
}

// tooOld reports whether a transition is past MaxAge.
func (h *hook) tooOld(t *alerts.Transition, now time.Time) bool {
	at, err := time.Parse(time.RFC3339Nano, t.Time)
	return h.config.MaxAge > 0 && err == nil && now.Sub(at) > h.config.MaxAge
}
