package sinks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/request"
)

// Writer identity and liveness.
const (
	// markRenewEvery is how often Audit repeats the mark of a shard that is silent.
	markRenewEvery = 20 * time.Second

	// markQuietEvery is how often Audit moves the watermark of a shard that has nothing to
	// say, where readers wait for other shards.
	markQuietEvery = time.Second

	// markFreshMax is the age up to which a mark proves that its writer lives.
	markFreshMax = time.Minute
)

// Identity names a process that publishes.
type Identity struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"` // when it began
}

// Equal reports whether both name one process.
func (i Identity) Equal(o Identity) bool {
	return i.Host == o.Host && i.PID == o.PID && i.Since.Equal(o.Since)
}

// shardMark is the first message of every batch, on the subject of its shard. It is fence,
// heartbeat and watermark at once: it is stored only directly after the mark that its writer knew
// as the last one, and the last part of a position says that the shard is complete up to there.
type shardMark struct {
	Writer   Identity `json:"writer"`
	Position uint64   `json:"position"`
	Time     string   `json:"time,omitempty"` // log time, RFC 3339
	Part     int      `json:"part"`           // 1 to Parts
	Parts    int      `json:"parts"`
	Records  int      `json:"records"` // of this part, which follow the mark directly
	Config   string   `json:"config"`  // digest of the configuration
	Classes  []string `json:"classes,omitempty"`
	Log      string   `json:"log"`             // identity of the log in
	Cut      bool     `json:"cut,omitempty"`   // as Emission has it
	Notes    []string `json:"notes,omitempty"` // as Emission has them; with the first part of shard 0
	Closed   bool     `json:"closed,omitempty"`

	// Quiet marks move the watermark of a shard that has nothing to say, and are no emission:
	// readers of other shards wait for them. Their time is that of the newest mark that is one.
	Quiet bool `json:"quiet,omitempty"`
}

func (m *shardMark) place() place { return place{m.Position, m.Part} }

// nanoseconds returns the log time, 0 where the log has none.
func (m *shardMark) nanoseconds() int64 {
	at, err := time.Parse(time.RFC3339Nano, m.Time)
	if err != nil {
		return 0
	}
	return at.UnixNano()
}

// parseMark reads a mark. Any other message is an error.
func parseMark(data []byte) (m shardMark, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("sinks: mark: %w", err)
	}
	if m.Part < 1 || m.Part > m.Parts || m.Records < 0 || m.Records > partRecordsMax {
		return m, errors.New("sinks: mark: part, parts or records are out of range")
	}
	return m, nil
}

// Mark is a mark with its shard, which is complete up to its position, and its place in the log out.
type Mark struct {
	shardMark
	Shard    int
	Sequence uint64
}

// Marks returns the newest mark of every shard, in order.
func Marks(ctx context.Context, js jetstream.JetStream, names Names) (list []Mark, err error) {
	stream, err := js.Stream(ctx, names.Estimates)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(names.markSubjects()))
	if err != nil {
		return nil, err
	}
	request.Leader(stream) // only the leader is asked
	for subject := range info.State.Subjects {
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			return nil, err
		}
		shard, isShard := names.shardOf(subject)
		if mark, err := parseMark(m.Data); err == nil && isShard {
			list = append(list, Mark{mark, shard, m.Sequence})
		}
	}
	slices.SortFunc(list, func(a, b Mark) int { return cmp.Compare(a.Shard, b.Shard) })
	return list, nil
}

// WatchMarks calls take for the newest mark of every shard, and for each that is stored afterwards,
// until ctx ends. Of emissions in several parts only the last one counts, and only marks of a log.
func WatchMarks(ctx context.Context, js jetstream.JetStream, names Names, log string, take func(Mark)) error {
	consumer, err := js.OrderedConsumer(ctx, names.Estimates, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{names.markSubjects()}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return err
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		at, err := m.Metadata()
		mark, markErr := parseMark(m.Data())
		shard, isShard := names.shardOf(m.Subject())
		if err != nil || markErr != nil || !isShard || mark.Log != log || mark.Part < mark.Parts {
			return
		}
		take(Mark{mark, shard, at.Sequence.Stream})
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	consuming.Stop()
	return nil
}

// Newest returns the cursor of a reader that has read everything that is published now.
// Of several shards it is the cursor of the one that is furthest behind. Emissions that others
// have published beyond it may come again.
func Newest(ctx context.Context, js jetstream.JetStream, c ReaderConfig) (Cursor, error) {
	shards := max(c.Shards, 1)
	newest := Cursor{Position: math.MaxUint64, Shard: shards - 1, Sequence: math.MaxUint64}
	for shard := range shards {
		w := &Writer{config: WriterConfig{Streams: StreamsConfig{Names: c.Names}, Shard: shard, Log: c.Log}, js: js}
		found, err := w.lastMark(ctx)
		if err != nil {
			return Cursor{}, fmt.Errorf("sinks: stream %s: %w", c.Names.Estimates, err)
		}
		w.config.Config = found.Config // whoever published it
		w.adopt(found)
		position, sequence := w.Published(), found.sequence-1
		if position == 0 {
			return Cursor{}, nil
		}
		if found.Part == found.Parts && !found.torn && shards == 1 {
			sequence += 1 + uint64(found.Records)
		}
		newest.Position, newest.Sequence = min(newest.Position, position), min(newest.Sequence, sequence)
	}
	stream, err := js.Stream(ctx, c.Names.Estimates)
	if err != nil {
		return Cursor{}, fmt.Errorf("sinks: stream %s: %w", c.Names.Estimates, err)
	}
	request.Leader(stream)                                         // only the leader is asked
	if m, err := stream.GetMsg(ctx, newest.Sequence); err == nil { // else the feed reads from the beginning
		newest.Stamp = m.Time.UnixNano()
	}
	return newest, nil
}
