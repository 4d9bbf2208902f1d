package notify

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A queue that somebody changes or deletes must be made again with its settings, and deliver every
// transition that was published meanwhile.
func TestAChangedQueueIsMadeAgain(t *testing.T) {
	for name, change := range map[string]func(*jetstream.ConsumerConfig){
		"another filter": func(c *jetstream.ConsumerConfig) {
			c.FilterSubject = "gqlest.alert.none"
		},
		"headers alone":  func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true },
		"a long AckWait": func(c *jetstream.ConsumerConfig) { c.AckWait = 24 * time.Hour },
		"paused": func(c *jetstream.ConsumerConfig) {
			at := time.Now().Add(time.Hour)
			c.PauseUntil = &at
		},
		"one delivery":   func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 1 },
		"soon forgotten": func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = time.Second },
		"small requests": func(c *jetstream.ConsumerConfig) {
			c.MaxRequestExpires = time.Millisecond
		},
		"deleted": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc, js := broker(t)
			to := listen(t, nil)
			targets := start(t, js, Config{Webhooks: []Webhook{{Name: "ops", URL: to.URL}}})
			defer targets.Stop()
			publish(t, nc, transition(1, "firing"))
			if got := to.next(t).header.Get(headerID); got != "id-1" {
				t.Fatalf("got %s first", got)
			}
			queue, err := js.Consumer(t.Context(), "GQL_ALERTS", "webhook-ops")
			if err != nil {
				t.Fatal(err)
			}
			if c := queue.CachedInfo().Config; change != nil {
				change(&c)
				_, err = js.UpdateConsumer(t.Context(), "GQL_ALERTS", c)
				var answer *jetstream.APIError
				if errors.As(err, &answer) && answer.Description == "consumer closed" {
					err = nil // the run has seen the change before the broker could answer
				}
			} else {
				err = js.DeleteConsumer(t.Context(), "GQL_ALERTS", "webhook-ops")
			}
			if err != nil {
				t.Fatal(err)
			}
			for n := 2; n <= 4; n++ {
				publish(t, nc, transition(n, "firing"))
			}
			for seen := map[string]bool{}; len(seen) < 3; { // at least once
				if id := to.next(t).header.Get(headerID); id != "id-1" {
					seen[id] = true
				}
			}
		})
	}
}

// A run that begins must not take a queue as somebody left it.
func TestAChangedQueueIsMadeAgainAtAStart(t *testing.T) {
	nc, js := broker(t)
	to := listen(t, nil)
	config := Config{Webhooks: []Webhook{{Name: "ops", URL: to.URL}}}
	start(t, js, config).Stop()
	queue, err := js.Consumer(t.Context(), "GQL_ALERTS", "webhook-ops")
	if err != nil {
		t.Fatal(err)
	}
	c := queue.CachedInfo().Config
	c.FilterSubject = "gqlest.alert.none"
	if _, err := js.UpdateConsumer(t.Context(), "GQL_ALERTS", c); err != nil {
		t.Fatal(err)
	}
	targets := start(t, js, config)
	defer targets.Stop()
	publish(t, nc, transition(1, "firing"))
	if got := to.next(t).header.Get(headerID); got != "id-1" {
		t.Errorf("got %s", got)
	}
}
