package request

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// startStream starts a server with a stream of n messages on the subjects s.0, s.1, s.2, s.0 and so
// on.
func startStream(t *testing.T, n int) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	_, nc := startServer(t, true)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(
		t.Context(),
		jetstream.StreamConfig{
			Name:     "S",
			Subjects: []string{"s.*"},
			Storage:  jetstream.MemoryStorage,
		},
	)
	for i := 0; i < n && err == nil; i++ {
		_, err = js.Publish(t.Context(), fmt.Sprint("s.", i%3), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return js, stream
}

// Each visits every message that there is once and ends, also where the client lost some on the
// way, and where the one before these was removed meanwhile.
func TestEachVisitsThePresentMessages(t *testing.T) {
	for name, c := range map[string]struct {
		feed  Feed
		after uint64
		want  []uint64
	}{
		"everything":     {Feed{}, 24, []uint64{25, 26, 27, 28, 29, 30}},
		"of a subject":   {Feed{Subjects: []string{"s.1"}}, 21, []uint64{23, 26, 29}},
		"the newest":     {Feed{Subjects: []string{"s.*"}, Newest: true}, 0, []uint64{28, 29, 30}},
		"behind the end": {Feed{}, 30, nil},
		"of nothing":     {Feed{Subjects: []string{"s.9"}}, 0, nil},
	} {
		js, stream := startStream(t, 30) // a case removes one of the messages
		feed, got := c.feed, []uint64(nil)
		feed.JS, feed.Stream = js, "S"
		err := feed.Each(t.Context(), c.after, func(m Message) (bool, error) {
			if got = append(got, m.Sequence); len(got) == 2 {
				feed.run.delivered-- // as if one had been lost
				if name == "of a subject" {
					return true, stream.DeleteMsg(t.Context(), m.Sequence)
				}
			}
			return true, nil
		})
		if !slices.Equal(got, c.want) || err != nil {
			t.Errorf("%s: %d, %v; want %d", name, got, err, c.want)
		}
	}
}

// A reading of the newest message of each subject visits no other one where it loses its consumer.
func TestEachOfTheNewestOutlivesItsConsumer(t *testing.T) {
	js, _ := startStream(t, 1)
	for _, subject := range []string{"s.1", "s.1", "s.2", "s.2", "s.2"} {
		if _, err := js.Publish(t.Context(), subject, nil); err != nil {
			t.Fatal(err)
		}
	}
	for lostAfter := range uint64(7) {
		feed, got := Feed{
			JS:       js,
			Stream:   "S",
			Subjects: []string{"s.*"},
			Newest:   true,
		}, []uint64(nil)
		err := feed.Each(t.Context(), 0, func(m Message) (bool, error) {
			if got = append(got, m.Sequence); m.Sequence == lostAfter {
				feed.Stop()
			}
			return true, nil
		})
		if want := []uint64{1, 3, 6}; !slices.Equal(got, want) || err != nil {
			t.Errorf("lost after %d: %d, %v; want %d", lostAfter, got, err, want)
		}
	}
}

// A feed must report messages that were discarded before it read them. When the stream is deleted
// and created again, the feed must continue from the beginning of the new stream.
func TestAFeedReportsDiscardedMessages(t *testing.T) {
	js, stream := startStream(t, 9)
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSequence(4)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	feed := Feed{JS: js, Stream: "S"}
	defer feed.Stop()
	next := func(sequence uint64, discarded bool) {
		t.Helper()
		m, err := feed.Next(ctx)
		if err != nil || m.Sequence != sequence || m.Missed != discarded {
			t.Fatalf(
				"message %d, missed %v, %v; want %d, %v", m.Sequence, m.Missed, err, sequence,
				discarded,
			)
		}
	}
	next(4, true)
	next(5, false)
	if err := js.DeleteStream(ctx, "S"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "S", Subjects: []string{"s.*"},
		Storage: jetstream.MemoryStorage,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "s.0", nil); err != nil {
		t.Fatal(err)
	}
	for feed.Last.Sequence != 1 { // the messages in the client's buffer come first
		if _, err := feed.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// A reader that waits for a moment only, again and again, must go on when the broker has forgotten
// its consumer.
func TestAFeedThatIsReadInShortWaitsOutlivesItsConsumer(t *testing.T) {
	const messages = feedPullMax + 100
	js, stream := startStream(t, messages)
	feed := Feed{JS: js, Stream: "S"}
	defer feed.Stop()
	if _, err := feed.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for delivered := uint64(0); delivered < feedPullMax; { // else the broker says that it is gone
		consumer, err := stream.Consumer(t.Context(), feed.name)
		if err != nil {
			t.Fatal(err)
		}
		delivered = consumer.CachedInfo().Delivered.Consumer
	}
	if err := js.DeleteConsumer(t.Context(), "S", feed.name); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); feed.Last.Sequence < messages; {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := feed.Next(ctx)
		if cancel(); err != nil && time.Since(begun) > 30*time.Second {
			t.Fatalf("message %d is the last one after %v", feed.Last.Sequence, time.Since(begun))
		}
	}
}

// silentBroker says that there is a message, and never sends it.
type silentBroker struct {
	jetstream.JetStream
	conn      nats.Conn
	consumers int
}

func (b *silentBroker) Conn() *nats.Conn { return &b.conn }

func (b *silentBroker) CreateConsumer(
	context.Context,
	string,
	jetstream.ConsumerConfig,
) (jetstream.Consumer, error) {
	b.consumers++
	return silentConsumer{}, nil
}

type silentConsumer struct{ jetstream.Consumer }

func (silentConsumer) CachedInfo() *jetstream.ConsumerInfo {
	return &jetstream.ConsumerInfo{NumPending: 1}
}

func (c silentConsumer) Consume(
	jetstream.MessageHandler,
	...jetstream.PullConsumeOpt,
) (jetstream.ConsumeContext, error) {
	return c, nil
}
func (silentConsumer) Closed() <-chan struct{} { return nil }
func (silentConsumer) Drain()                  {}
func (silentConsumer) Stop()                   {}

// A reading of the present messages ends when it gets none of them, however often it asks.
func TestEachGivesUpASilentBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := &silentBroker{}
		feed := Feed{JS: broker, Stream: "S"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := feed.Each(ctx, 0, func(Message) (bool, error) { return true, nil })
		if n := broker.consumers; err == nil || ctx.Err() != nil || n != 1+eachTriesMax {
			t.Errorf("%d consumers, %v", n, err)
		}
	})
}
