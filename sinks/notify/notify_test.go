package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
)

var streamConfig = jetstream.StreamConfig{Name: "GQL_ALERTS", Subjects: []string{"gqlest.alert.>"}}

// broker is a real server with the stream of alerts.
func broker(t *testing.T) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	s, err := server.NewServer(
		&server.Options{
			JetStream:  true,
			StoreDir:   t.TempDir(),
			DontListen: true,
			NoSigs:     true,
			NoLog:      true,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), streamConfig)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// received is a request that a test server got.
type received struct {
	header http.Header
	path   string
	body   []byte
	at     time.Time
}

// receiver is a real HTTP server that answers as it is told.
type receiver struct {
	*httptest.Server
	got chan received

	mu     sync.Mutex
	answer func(n int, w http.ResponseWriter)
	n      int
}

func listen(t *testing.T, answer func(n int, w http.ResponseWriter)) *receiver {
	r := &receiver{got: make(chan received, 1000), answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.n++
		n := r.n
		r.mu.Unlock()
		r.got <- received{q.Header, q.URL.Path, body, time.Now()}
		if r.answer != nil {
			r.answer(n, w)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// next waits for a request.
func (r *receiver) next(t *testing.T) received {
	t.Helper()
	select {
	case got := <-r.got:
		return got
	case <-time.After(time.Minute):
		t.Fatal("no request")
		return received{}
	}
}

func transition(n int, state alerts.State) alerts.Transition {
	at := time.Date(2026, 3, 1, 12, 0, n, 0, time.UTC).Format(time.RFC3339)
	return alerts.Transition{
		ID: fmt.Sprintf(
			"id-%d",
			n,
		), Alert: "a", Pipeline: "p", Rule: "r", Community: "x/y", Class: "left", Method: "auto",
		State: state, Position: uint64(n), Time: at, Since: at, Reason: "because", Point: 0.5,
		Low: 0.4, High: 0.6,
		Text: fmt.Sprintf("story %d", n), Moved: 0.1, From: at,
		Labels: map[string]string{"severity": "page"},
	}
}

// publish stores transitions as the alerts do.
func publish(t *testing.T, nc *nats.Conn, list ...alerts.Transition) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if _, err := js.Publish(t.Context(), defaultNames().AlertSubject(x.Rule, x.Community),
			x.JSON()); err != nil {
			t.Fatal(err)
		}
	}
}

func start(t *testing.T, js jetstream.JetStream, c Config) *Targets {
	t.Helper()
	targets, err := Start(t.Context(), js, "GQL_ALERTS", c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { targets.Close() })
	return targets
}

func secretFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	testfile.Write(t, path, secret+"\n")
	return path
}

// Transitions must arrive in order, signed, with their ids, and the ones that were
// refused at first must come again before the later ones.
func TestWebhookDeliversInOrderSignedAndAgain(t *testing.T) {
	nc, js := broker(t)
	const secret = "a secret of some length"
	r := listen(t, func(n int, w http.ResponseWriter) {
		if n == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	targets := start(
		t,
		js,
		Config{
			Webhooks: []Webhook{
				{Name: "ops", URL: r.URL + "/hook", SecretFile: secretFile(t, secret)},
			},
		},
	)
	publish(
		t, nc, transition(1, alerts.Firing), transition(2, alerts.Resolved),
		transition(3, alerts.Firing),
	)
	for i, want := range []string{"id-1", "id-2", "id-2", "id-3"} {
		got := r.next(t)
		if got.header.Get(headerID) != want || got.path != "/hook" {
			t.Fatalf("request %d is %s, want %s", i, got.header.Get(headerID), want)
		}
		seconds, err := strconv.ParseInt(got.header.Get(headerTimestamp), 10, 64)
		if err != nil || got.at.Sub(time.Unix(seconds, 0)).Abs() > time.Minute {
			t.Errorf("time %q", got.header.Get(headerTimestamp))
		}
		if sign := signature([]byte(secret), want, time.Unix(seconds, 0), got.body); got.header.Get(
			headerSignature,
		) != sign {
			t.Errorf("signature %q, want %q", got.header.Get(headerSignature), sign)
		}
		var x alerts.Transition
		if err := json.Unmarshal(got.body, &x); err != nil || x.ID != want ||
			x.Labels["severity"] != "page" {
			t.Errorf("body %s: %v", got.body, err)
		}
	}
	targets.Close()
	s := targets.Stats()[0]
	if s.Name != "webhook/ops" || s.Outcomes[outcomeDelivered] != 3 ||
		s.Outcomes[outcomeFailed] != 1 ||
		s.Queue != 0 ||
		s.Error != "" {
		t.Errorf("stats %+v", s)
	}
}

// The signature must be the one that the Standard Webhooks specification defines:
// printf 'id.1700000000.{"a":1}' | openssl dgst -sha256 -hmac key -binary | base64
func TestSignatureIsTheStandardOne(t *testing.T) {
	got := signature([]byte("key"), "id", time.Unix(1700000000, 0), []byte(`{"a":1}`))
	if want := "v1,71H6m+lN5Gu6QnmWnatHF7iPfAlwQepZU+jrXQV2kN0="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// After a restart, undelivered alerts must be sent, and delivered ones not again; a new
// target gets new alerts.
func TestQueueSurvivesARestart(t *testing.T) {
	nc, js := broker(t)
	publish(t, nc, transition(1, alerts.Firing)) // before there was a target
	var down sync.Mutex
	broken := true
	r := listen(t, func(_ int, w http.ResponseWriter) {
		down.Lock()
		defer down.Unlock()
		if broken {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	c := Config{Webhooks: []Webhook{{Name: "ops", URL: r.URL}}}
	first := start(t, js, c)
	publish(t, nc, transition(2, alerts.Resolved), transition(3, alerts.Firing))
	if id := r.next(t).header.Get(headerID); id != "id-2" {
		t.Fatalf("%s came first", id)
	}
	first.Close()
	down.Lock()
	broken = false
	down.Unlock()
	start(t, js, c)
	for want := 2; want <= 3; {
		if r.next(t).header.Get(headerID) == fmt.Sprintf("id-%d", want) {
			want++
		}
	}
}

// A message that nobody takes must be given up, and let the next one pass.
func TestWebhookGivesUpInTheEnd(t *testing.T) {
	nc, js := broker(t)
	r := listen(t, func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) })
	targets := start(
		t,
		js,
		Config{Webhooks: []Webhook{{Name: "ops", URL: r.URL, RetryFor: time.Nanosecond}}},
	)
	publish(t, nc, transition(1, alerts.Firing), transition(2, alerts.Resolved))
	r.next(t)
	if id := r.next(t).header.Get(headerID); id != "id-2" {
		t.Errorf("then came %s", id)
	}
	targets.Close()
	if s := targets.Stats()[0]; s.Outcomes[outcomeDropped] != 2 ||
		!strings.Contains(s.Error, "403") {
		t.Errorf("stats %+v", s)
	}
}

func TestWebhookWantsItsRulesAndNotTheOldOnes(t *testing.T) {
	nc, js := broker(t)
	r := listen(t, nil)
	start(t, js, Config{Webhooks: []Webhook{{
		Name: "ops", URL: r.URL, MaxAge: time.Hour, Rules: []string{"r"},
	}}})
	other, fresh := transition(2, alerts.Firing), transition(3, alerts.Firing)
	other.Rule, fresh.Time = "other", time.Now().Format(time.RFC3339)
	publish(t, nc, transition(1, alerts.Firing), other, fresh)
	if id := r.next(t).header.Get(headerID); id != "id-3" {
		t.Errorf("%s came, want id-3", id)
	}
}

// A webhook whose queue cannot be read must say so, for example if somebody has removed the
// stream.
func TestAQueueThatIsGoneShows(t *testing.T) {
	_, js := broker(t)
	said := make(said, 100)
	c := Config{Webhooks: []Webhook{{Name: "ops", URL: "https://example.com"}}}
	targets, err := Start(
		t.Context(), js, "GQL_ALERTS", c, slog.New(slog.NewTextHandler(said, nil)),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer targets.Close()
	if err := js.DeleteStream(t.Context(), "GQL_ALERTS"); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-said:
		if s := targets.Stats()[0]; !strings.Contains(line, "its queue cannot be read") ||
			!strings.Contains(s.Error, "cannot be read") {
			t.Errorf("it says %q, stats %+v", line, s)
		}
	case <-time.After(time.Minute):
		t.Error("it says nothing")
	}
}

// said receives log messages, a line at a time.
type said chan string

func (s said) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

// A stream that is deleted and made again during the run takes the queues with it. They
// must be made again, with the alerts of the new stream.
func TestAQueueIsMadeAgainWithItsStream(t *testing.T) {
	nc, js := broker(t)
	r := listen(t, nil)
	start(t, js, Config{Webhooks: []Webhook{{Name: "ops", URL: r.URL}}})
	publish(t, nc, transition(1, alerts.Firing))
	if id := r.next(t).header.Get(headerID); id != "id-1" {
		t.Fatalf("%s came first", id)
	}
	if err := js.DeleteStream(t.Context(), "GQL_ALERTS"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), streamConfig); err != nil {
		t.Fatal(err)
	}
	publish(t, nc, transition(2, alerts.Resolved), transition(3, alerts.Firing))
	for _, want := range []string{"id-2", "id-3"} {
		if id := r.next(t).header.Get(headerID); id != want {
			t.Fatalf("%s came, want %s", id, want)
		}
	}
}

// Redirects must not be followed.
func TestRedirectsAreNotFollowed(t *testing.T) {
	r := listen(t, nil)
	away := listen(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Location", r.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	err := post(t.Context(), newClient(), away.URL, http.Header{}, nil)
	if err == nil || !strings.Contains(err.Error(), "redirects are not followed") ||
		len(r.got) > 0 {
		t.Errorf("a redirect: %v", err)
	}
}

// A receiver that never ends its answer, or never begins it, must cost no more than
// the time and memory that an attempt may take.
func TestSlowAndEndlessAnswersAreCutOff(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		for q.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	err := post(t.Context(), newClient(), endless.URL, http.Header{}, nil)
	if err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "400") {
		t.Errorf("endless: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	silent := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { <-ctx.Done() }),
	)
	defer silent.Close()
	defer cancel()
	begun, impatient := time.Now(), newClient()
	impatient.Timeout = 100 * time.Millisecond
	if err := post(t.Context(), impatient, silent.URL+"/secret", http.Header{}, nil); err == nil ||
		time.Since(begun) > 5*time.Second || strings.Contains(err.Error(), "secret") {
		t.Errorf("silent: %v after %v", err, time.Since(begun))
	}
}

func TestMistakesInTargetsAreNamed(t *testing.T) {
	err := Config{
		Link: "ftp://x",
		Webhooks: []Webhook{
			{
				Name: "a",
				URL:  "https://user:password@example.com",
			}, {Name: "a", URL: "example.com"}, {Name: "b", URL: "https://", MaxAge: -1},
		},
		Alertmanagers: []Alertmanager{{URL: "http://am:9093/#x"}, {Name: "c", URL: "%"}},
	}.Validate()
	for _, want := range []string{
		"notify.link: scheme", "webhooks[0].url: it holds a password", "webhooks[1].name",
		"webhooks[1].url: scheme", "webhooks[2].url: it has no host",
		"webhooks[2]: -1ns", "alertmanagers[0].name", "alertmanagers[0].url: it has a fragment",
		"alertmanagers[1].url",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), ":password@") {
		t.Error("the password is shown")
	}
	_, js := broker(t)
	open := secretFile(t, "a secret of some length")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		open:                   "chmod 600",
		secretFile(t, "short"): "want 16 or more", "missing": "no such file",
	} {
		_, err := Start(
			t.Context(), js, "GQL_ALERTS",
			Config{Webhooks: []Webhook{{Name: "a", URL: "https://x.org", SecretFile: path}}},
			slog.Default(),
		)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// defaultNames returns the names that hang on the default prefix.
func defaultNames() sinks.Names {
	n, err := sinks.NewNames("")
	if err != nil {
		panic(err)
	}
	return n
}
