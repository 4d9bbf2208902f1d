package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/request"
)

// Published messages must come out as steps in order: events, refusals with their position
// and original bytes, and an emission at the end.
func TestPublishedEventsComeOutAsSteps(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 2)
	b.publish(event.KindEdge, `not json`, `[{"src":7,"dst":8},{"src":9,"dst":9},{"src":5,"dst":6}]`)
	b.publish(event.KindLabel, `{"vertex":1,"label":1}`)
	if _, err := b.js.Publish(testContext(t), "gql.nonsense", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	b.publish(event.KindControl, `{"op":"checkpoint"}`)
	b.edges(3, 1)
	s := b.open(JetStreamConfig{Step: StepConfig{Every: -1}, UntilLast: true})
	var batch event.Batch
	if err := s.Next(testContext(t), &batch); err != nil {
		t.Fatal(err)
	}
	if batch.First != 1 || batch.Last != 7 || !batch.Checkpoint || batch.Emit ||
		len(batch.Edges) != 4 || len(batch.Labels) != 1 {
		t.Errorf("first step: %s", summary(&batch))
	}
	var refused []string
	for _, r := range batch.Refused {
		refused = append(refused, fmt.Sprintf("%d/%d %s", r.Position, r.Index, r.Reason))
	}
	want := []string{"3/-1 malformed", "4/1 self-loop", "6/-1 unknown-kind"}
	if !slices.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
	if len(refused) > 0 && string(batch.Refused[0].Original) != "not json" {
		t.Errorf("original %q", batch.Refused[0].Original)
	}
	if err := s.Next(testContext(t), &batch); err != nil {
		t.Fatal(err)
	}
	if batch.First != 8 || batch.Last != 8 || !batch.Emit || len(batch.Edges) != 1 {
		t.Errorf("second step: %s", summary(&batch))
	}
	for range 2 {
		if err := s.Next(testContext(t), &batch); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
	}
}

// The steps of a log must not depend on how it was fetched, nor on whether it was
// all there from the beginning, nor on a restart in the midst; in both time modes.
func TestStepsDoNotDependOnDelivery(t *testing.T) {
	b := startBroker(t, "")
	b.randomLog(1, 600)
	for _, mode := range []TimeMode{ReceivedTime, EventTime} {
		config := StepConfig{
			EventsMax: 40,
			Every:     20 * time.Millisecond,
			EmitEvery: 60 * time.Millisecond,
			Time:      mode,
		}
		want := drain(t, b.open(JetStreamConfig{Step: config, UntilLast: true}))
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 4))
			s := b.open(JetStreamConfig{Step: config, UntilLast: true})
			var got []string
			var batch event.Batch
			for {
				for range rng.IntN(3) { // lose fetched messages
					s.feed.Stop()
				}
				if err := s.Next(testContext(t), &batch); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				got = append(got, summary(&batch))
				if rng.IntN(4) > 0 {
					continue
				}
				id := s.Identity()
				s.Close()
				s = b.open(JetStreamConfig{
					Step: config, UntilLast: true, From: resumeAfter(&batch), Identity: &id,
				})
			}
			if !slices.Equal(got, want) {
				t.Fatalf("mode %d seed %d: %s", mode, seed, firstDifference(got, want))
			}
		}
	}
}

// A source that ends at a position must deliver exactly the log up to it, and one
// that is beyond it already, nothing.
func TestSourceEndsAtTheGivenPosition(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 20)
	s := b.open(JetStreamConfig{Until: 7})
	var batch event.Batch
	var last event.Position
	for {
		err := s.Next(testContext(t), &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = batch.Last
	}
	if last != 7 {
		t.Errorf("ended at %d, want 7", last)
	}
	s = b.open(JetStreamConfig{Until: 7, From: Resume{Position: 7, Emitted: true}})
	if err := s.Next(testContext(t), &batch); !errors.Is(err, io.EOF) {
		t.Errorf("already there: %v", err)
	}
	_, err := OpenJetStream(testContext(t), b.js, testDecoder(t), JetStreamConfig{Until: 21})
	if err == nil || !strings.Contains(err.Error(), "ends at position 20") {
		t.Errorf("beyond the end: %v", err)
	}
	empty := startBroker(t, "")
	s = empty.open(JetStreamConfig{UntilLast: true})
	if err := s.Next(testContext(t), &batch); !errors.Is(err, io.EOF) {
		t.Errorf("empty stream: %v", err)
	}
}

// A message in a newer schema must be refused, and must not end the run. Otherwise any producer
// could stop every run.
func TestAnUnknownSchemaVersionStopsNothing(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 2)
	m := nats.NewMsg("gql.edge")
	m.Header.Set(wire.HeaderSchema, "7")
	m.Data = []byte(`{"src":1,"dst":2}`)
	if _, err := b.js.PublishMsg(testContext(t), m); err != nil {
		t.Fatal(err)
	}
	b.edges(4, 4)
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Every: -1}})
	var batch event.Batch
	edges, refused := 0, 0
	for {
		err := s.Next(testContext(t), &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		edges += len(batch.Edges)
		for _, r := range batch.Refused {
			refused++
			if r.Position != 3 || r.Reason != event.Malformed ||
				!strings.Contains(r.Detail, `schema version "7"`) {
				t.Errorf("refusal %+v", r)
			}
		}
	}
	if edges != 6 || refused != 1 {
		t.Errorf("%d edges and %d refusals, want 6 and 1", edges, refused)
	}
}

// A live source must deliver a step once ticks move the log's time, although no
// event follows.
func TestTicksMoveAnIdleStream(t *testing.T) {
	b := startBroker(t, "")
	s := b.open(JetStreamConfig{Step: StepConfig{Every: 20 * time.Millisecond}})
	ticker := StartTicker(
		testContext(t),
		b.js,
		TickerConfig{Every: 20 * time.Millisecond, Pending: s.Pending},
	)
	defer ticker.Stop()
	b.edges(1, 1)
	var batch event.Batch
	for edges := 0; edges == 0 || !batch.Emit; edges += len(batch.Edges) {
		if err := s.Next(testContext(t), &batch); err != nil {
			t.Fatal(err)
		}
	}
	if s.Pending() {
		t.Error("events are pending after an emission")
	}
	if s := ticker.State(); s.Condition != request.Delivering || s.Retries > 0 {
		t.Errorf("ticks failed: %+v", s)
	}
}

// When the caller gives up, Next must return, and the source close.
func TestNextEndsWithItsContext(t *testing.T) {
	b := startBroker(t, "")
	s := b.open(JetStreamConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	var batch event.Batch
	if err := s.Next(ctx, &batch); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Strings in a batch must stay as they were while later messages arrive.
func TestBatchKeepsItsBytes(t *testing.T) {
	b := startBroker(t, "")
	for i := range 50 {
		b.publish(
			event.KindMember,
			fmt.Sprintf(`{"community":"community-%02d","vertex":"v-%02d"}`, i, i),
		)
	}
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Every: -1}})
	var batch event.Batch
	if err := s.Next(testContext(t), &batch); err != nil {
		t.Fatal(err)
	}
	b.publish(event.KindMember, strings.Repeat(`{"community":"other","vertex":"x"}`, 1))
	for i, m := range batch.Members {
		if want := fmt.Sprintf("community-%02d", i); m.Community != want ||
			m.Vertex.Name != fmt.Sprintf("v-%02d", i) {
			t.Fatalf("member %d is %v", i, m)
		}
	}
}

// Large messages, more than any buffer holds, must all arrive in order, although the client
// silently drops messages that it cannot buffer.
func TestLargeMessagesAreNotLost(t *testing.T) {
	b := bareBroker(t, broker.EmbeddedConfig{})
	if err := broker.EnsureStreams(testContext(t), b.js, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	const messages, padding = 66, 1<<20 - 1000
	p, err := NewPublisher(b.nc, PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i := range messages {
		payload := fmt.Appendf(
			nil, `[{"src":%d,"dst":%d}%s]`, i, i+1, bytes.Repeat([]byte(" "), padding),
		)
		if err := p.Publish(testContext(t), Outgoing{
			Kind:    event.KindEdge,
			Payload: payload,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(testContext(t)); err != nil {
		t.Fatal(err)
	}
	d, err := wire.NewDecoder(event.ClassSet{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenJetStream(testContext(t), b.js, d, JetStreamConfig{UntilLast: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	edges, bytesMax := 0, 0
	var batch event.Batch
	for {
		err := s.Next(testContext(t), &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		edges += len(batch.Edges)
		bytesMax = max(bytesMax, len(batch.Edges)*padding)
	}
	if edges != messages {
		t.Errorf("%d edges, want %d", edges, messages)
	}
	if bytesMax > stepBytesMaxDefault+2*padding {
		t.Errorf("a step held %d bytes", bytesMax)
	}
}

// In event time a message that gives no time, such as a tick, must not move the
// log's time to the broker's clock: old logs would never reach a boundary again.
func TestEventTimeIgnoresTheBrokersClock(t *testing.T) {
	b := startBroker(t, "")
	b.publish(event.KindEdge, `{"src":1,"dst":2,"time":1000.05}`)
	b.publish(event.KindControl, `{"op":"tick"}`, `{"op":"configure","config":{}}`)
	b.publish(
		event.KindEdge, `{"src":3,"dst":4}`, `{"src":1,"dst":3,"time":1000.06}`,
		`{"src":1,"dst":4,"time":1000.25}`,
	)
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Time: EventTime}})
	var batch event.Batch
	var got []string
	for {
		err := s.Next(testContext(t), &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(
			got,
			fmt.Sprintf("%d-%d %d %v", batch.First, batch.Last, batch.Time/1e6, batch.Emit),
		)
	}
	want := []string{"1-3 1000050 false", "4-5 1000060 true", "6-6 1000250 true"}
	if !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}
