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
	"text/template"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
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
	fetchWaitMax = time.Second // also how long a stop may go unnoticed
	brokenWait   = time.Second // after an error of the broker
	ackWaitExtra = 30 * time.Second
	queueKept    = 30 * 24 * time.Hour // lifetime of a queue without deliveries
)

// hook delivers to one webhook. Its goroutine owns it, except for the fields guarded by target.
type hook struct {
	config   Webhook
	secret   []byte
	template *template.Template // nil: the stored transition
	stream   jetstream.Stream
	consumer jetstream.Consumer
	seen     time.Time // when the queue was last known to exist, by the broker's clock
	done     uint64    // every transition up to this sequence has been dealt with
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

// newHook returns a hook without a queue.
func newHook(w Webhook, link string, log *slog.Logger) (h *hook, err error) {
	w.RetryFor = cmp.Or(w.RetryFor, RetryForDefault)
	h = &hook{
		config: w,
		target: target{name: "webhook/" + w.Name, link: link, client: newClient(), log: log},
	}
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

// settings returns the settings of the queue, which is a consumer.
func (h *hook) settings() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: consumerName(h.config.Name), Name: consumerName(h.config.Name),
		Description: "gqlstream: webhook " + h.config.Name, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: attemptMax + ackWaitExtra, MaxDeliver: -1, MaxAckPending: 1,
		InactiveThreshold: queueKept,
	}
}

// intact reports whether a queue has the right settings. Users who may create consumers of the
// stream can also change existing ones, and a queue with another filter would stay silent.
func (h *hook) intact(have jetstream.ConsumerConfig) bool {
	want := h.settings()
	return have.Durable == want.Durable && have.FilterSubject == "" &&
		len(have.FilterSubjects) == 0 && have.AckPolicy == want.AckPolicy &&
		have.AckWait == want.AckWait && have.MaxDeliver == want.MaxDeliver &&
		have.MaxAckPending == want.MaxAckPending &&
		have.InactiveThreshold == want.InactiveThreshold && len(have.BackOff) == 0 &&
		have.ReplayPolicy == jetstream.ReplayInstantPolicy && have.RateLimit == 0 &&
		!have.HeadersOnly && have.DeliverSubject == "" && have.PauseUntil == nil &&
		have.MaxRequestBatch == 0 && have.MaxRequestExpires == 0 && have.MaxRequestMaxBytes == 0
}

// open opens the queue. If there is none, or its settings were changed, it creates one that
// continues after the last transition dealt with. A new webhook does not get earlier transitions.
func (h *hook) open(ctx context.Context) error {
	name := consumerName(h.config.Name)
	consumer, err := h.stream.Consumer(ctx, name)
	if err == nil && !h.intact(consumer.CachedInfo().Config) {
		// a filter may have moved it
		h.done = cmp.Or(h.done, consumer.CachedInfo().AckFloor.Stream)
		h.log.Warn("webhook: somebody changed the settings of its queue; it is made again",
			"webhook", h.config.Name, "consumer", name, "from", h.done+1)
		if err = h.stream.DeleteConsumer(ctx, name); err == nil {
			err = jetstream.ErrConsumerNotFound
		}
	}
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		c := h.settings()
		c.DeliverPolicy = jetstream.DeliverByStartTimePolicy
		c.OptStartTime = &h.seen
		if info, err := h.stream.Info(ctx); err == nil && h.done > 0 &&
			info.State.LastSeq >= h.done { // otherwise the stream was replaced
			c.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
			c.OptStartTime = nil
			c.OptStartSeq = h.done + 1
		}
		consumer, err = h.stream.CreateConsumer(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("notify: webhook %s: %w", h.config.Name, err)
	}
	h.consumer = consumer
	return nil
}

// measure measures the queue, and recreates it if its settings were changed.
func (h *hook) measure(ctx context.Context) {
	info, err := h.consumer.Info(ctx)
	switch {
	case err != nil: // the next attempt to read reports it
	case !h.intact(info.Config):
		_ = h.open(ctx)
	default:
		h.seen, h.done = info.TimeStamp, info.AckFloor.Stream
		h.depth.Store(info.NumPending + uint64(info.NumAckPending)) // outstanding work
	}
}

// run delivers until ctx ends.
func (h *hook) run(ctx context.Context) {
	for ctx.Err() == nil {
		message, err := h.consumer.Next(jetstream.FetchMaxWait(fetchWaitMax))
		switch {
		case err == nil:
			h.reads(nil)
			h.deliver(ctx, message)
		case errors.Is(err, jetstream.ErrNoMessages) || errors.Is(err, nats.ErrTimeout):
			h.reads(nil)
		default:
			if h.reads(err) {
				h.log.Warn("webhook: its queue cannot be read", "webhook", h.config.Name, "error",
					err)
			}
			_ = request.Pause(ctx, brokenWait)
			// the stream may have been replaced; otherwise the next look fails again
			_ = h.open(ctx)
		}
		h.measure(ctx)
	}
}

// deliver makes one attempt, and tells the broker the outcome.
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
		h.log.Warn("webhook: will be tried again", "webhook", h.config.Name, "id", t.ID, "try",
			meta.NumDelivered, "error", err)
		_ = m.NakWithDelay(min(retryWaitMax, retryWaitMin<<min(max(meta.NumDelivered, 1)-1, 20)))
	}
}

// ackWaitMax bounds the wait for the broker's confirmation of an acknowledgement.
const ackWaitMax = 5 * time.Second

// send makes one signed request about a transition; data is its JSON.
func (h *hook) send(
	ctx context.Context, t *alerts.Transition, at time.Time, data []byte,
) (err error) {
	if h.template != nil {
		if data, err = execute(h.template, t, h.link); err != nil {
			return fmt.Errorf("template: %w", err)
		}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if !json.Valid(data) {
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	header.Set(headerID, t.ID)
	header.Set(headerTimestamp, strconv.FormatInt(at.Unix(), 10))
	if h.secret != nil {
		header.Set(headerSignature, signature(h.secret, t.ID, at, data))
	}
	return post(ctx, h.client, h.config.URL, header, data)
}

// drop gives up on a message.
func (h *hook) drop(m jetstream.Msg, id string, err error) {
	h.count(outcomeDropped, err)
	h.log.Error("webhook: an alert is dropped, because it was not accepted within retry_for",
		"webhook", h.config.Name, "id", id, "error", err)
	_ = m.Term()
}

// tooOld reports whether a transition is past MaxAge.
func (h *hook) tooOld(t *alerts.Transition, now time.Time) bool {
	at, err := time.Parse(time.RFC3339Nano, t.Time)
	return h.config.MaxAge > 0 && err == nil && now.Sub(at) > h.config.MaxAge
}
