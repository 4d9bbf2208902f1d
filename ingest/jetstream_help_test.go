package ingest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

func testDecoder(t *testing.T) *wire.Decoder {
	t.Helper()
	d, err := wire.NewDecoder(event.ClassSet{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (b *testBroker) open(c JetStreamConfig) *JetStreamSource {
	b.t.Helper()
	s, err := OpenJetStream(testContext(b.t), b.js, testDecoder(b.t), c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	return s
}

func (b *testBroker) publish(kind event.Kind, payloads ...string) {
	b.t.Helper()
	for _, p := range payloads {
		if _, err := b.js.Publish(testContext(b.t), "gql."+kind.String(), []byte(p)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// edges publishes n messages of one edge each: (i, i+1) for i from first.
func (b *testBroker) edges(first, n int) {
	b.t.Helper()
	for i := first; i < first+n; i++ {
		b.publish(event.KindEdge, fmt.Sprintf(`{"src":%d,"dst":%d}`, i, i+1))
	}
}

// summary is everything of a batch that a test compares.
func summary(b *event.Batch) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d-%d %d emit=%v checkpoint=%v", b.First, b.Last, b.Time, b.Emit, b.Checkpoint)
	fmt.Fprintf(
		&s, " %v %v %v %v %v %v", b.Edges, b.Labels, b.Predictions, b.Members, b.Vertices,
		b.Controls,
	)
	for _, r := range b.Refused {
		fmt.Fprintf(
			&s, " refused %d/%d %s %s %q", r.Position, r.Index, r.Kind, r.Reason, r.Original,
		)
	}
	return s.String()
}

// drain returns the summaries of all steps of a finite source.
func drain(t *testing.T, s Source) []string {
	t.Helper()
	var all []string
	var b event.Batch
	for ctx := testContext(t); ; {
		err := s.Next(ctx, &b)
		if errors.Is(err, io.EOF) {
			if b.Events() != 0 || b.First <= b.Last {
				t.Errorf("batch at the end is not empty: %s", summary(&b))
			}
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, summary(&b))
	}
}

// randomLog publishes messages of all kinds, with event times, some of them bad.
func (b *testBroker) randomLog(seed uint64, n int) {
	b.t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	p, err := NewPublisher(b.nc, PublisherConfig{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer p.Close()
	now := 1_700_000_000.0
	for range n {
		now += rng.Float64() * 0.05
		kind, text := randomMessage(rng, now)
		if err := p.Publish(testContext(b.t), Outgoing{
			Kind:    kind,
			Payload: []byte(text),
		}); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := p.Flush(testContext(b.t)); err != nil {
		b.t.Fatal(err)
	}
}

func randomMessage(rng *rand.Rand, now float64) (event.Kind, string) {
	edge := func() string {
		return fmt.Sprintf(
			`{"src":"u%d","dst":"v%d","time":%f}`, rng.IntN(50), rng.IntN(50), now-rng.Float64(),
		)
	}
	switch rng.IntN(20) {
	case 0:
		return event.KindVertex, fmt.Sprintf(`{"vertex":"u%d","erase":true}`, rng.IntN(50))
	case 1:
		return event.KindControl, `{"op":"flush"}`
	case 2:
		return event.KindControl, `{"op":"checkpoint"}`
	case 3:
		return event.KindEdge, `{"src":`
	case 4:
		return event.KindEdge, fmt.Sprintf(`[%s,{"src":1,"dst":1},%s]`, edge(), edge())
	case 5:
		return event.KindPrediction, fmt.Sprintf(
			`{"vertex":"u%d","probabilities":[0.25,0.75]}`,
			rng.IntN(50),
		)
	case 6:
		return event.KindLabel, fmt.Sprintf(
			`{"vertex":"u%d","label":%d,"time":%f}`, rng.IntN(50), rng.IntN(2), now,
		)
	case 7:
		return event.KindControl, `{"op":"tick"}`
	}
	return event.KindEdge, edge()
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("step %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d steps, want %d", len(got), len(want))
}
