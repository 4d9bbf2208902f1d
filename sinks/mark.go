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

	"gqlstream/internal/request"
)

// Writer identity and liveness.
const (
	// markRenewEvery is how often Audit repeats the mark of a shard that is silent.
	markRenewEvery = 45 * time.Second

	// markQuietEvery is how often Audit moves the watermark of a shard that has nothing to
	// say, where readers wait for it: another shard has published records behind it.
	markQuietEvery = time.Second

	// markFreshMax is the largest age of a mark that proves that its writer lives.
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
	Digest   string   `json:"digest,omitempty"` // of the input log up to the position
	Time     string   `json:"time,omitempty"`   // log time, RFC 3339
	Part     int      `json:"part"`             // 1 to Parts
	Parts    int      `json:"parts"`
	Records  int      `json:"records"` // of this part, which follow the mark directly
	Config   string   `json:"config"`  // digest of the configuration
	Classes  []string `json:"classes,omitempty"`
	Log      string   `json:"log"`           // identity of the input log
	Cut      bool     `json:"cut,omitempty"` // as Emission has it
	// as Emission has them; with the first part of shard 0
	Notes  []string `json:"notes,omitempty"`
	Closed bool     `json:"closed,omitempty"`

	// Quiet marks move the watermark of a shard that has nothing to say, and are no emission:
	// readers of other shards wait for them. Their time is that of the newest mark that is one.
	Quiet bool `json:"quiet,omitempty"`

	// Active is the log time of the newest mark with records, nanoseconds since 1970; see
	// Heartbeats.
	Active int64 `json:"active,omitempty"`
}

func (m *shardMark) place() Place { return Place{m.Position, m.Part} }

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
		return m, fmt.Errorf("mark: %w", err)
	}
	if m.Part < 1 || m.Part > m.Parts || m.Records < 0 || m.Records > partRecordsMax {
		return m, errors.New("mark: part, parts or records are out of range")
	}
	return m, nil
}

// Mark is a mark as the stream's leader has it.
type Mark struct {
	shardMark
	Shard    int
	Sequence uint64 // 0: there is none
	age      time.Duration
	torn     bool // its records are not all there
}

// complete returns the last complete position of the shard.
func (m *Mark) complete() uint64 {
	if m.torn || m.Part < m.Parts {
		return max(m.Position, 1) - 1
	}
	return m.Position
}

// leader returns a stream with its leader alone as the source of answers: a lagging replica must
// not decide which records have been published.
func leader(
	ctx context.Context,
	js jetstream.JetStream,
	name string,
) (jetstream.Stream, *jetstream.StreamInfo, error) {
	ctx, cancel := request.Context(ctx, js.Conn())
	defer cancel()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return stream, request.Leader(stream), nil
}

// lastMark reads the last mark of a shard. It skips other messages on the subject but counts their
// sequence. known is an earlier mark, or zero: earlier messages are not read.
func lastMark(
	ctx context.Context, js jetstream.JetStream, names Names, shard int, known Mark,
) (found Mark, err error) {
	stream, info, err := leader(ctx, js, names.Estimates)
	if err != nil {
		return found, err
	}
	m, err := stream.GetLastMsgForSubject(ctx, names.MarkSubject(shard))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	found = Mark{Shard: shard, Sequence: m.Sequence, age: max(info.TimeStamp.Sub(m.Time), 0)}
	if found.shardMark, err = parseMark(m.Data); err != nil {
		found.shardMark, err = markBefore(ctx, stream, m, info.State.FirstSeq, known)
		return found, err
	}
	found.torn, err = torn(ctx, stream, m, &found.shardMark)
	return found, err
}

// markBefore searches for the newest mark before a foreign message on the shard's
// subject. The fence must still follow that message. Those before it are read one by one, and there
// may be many: the search ends at the mark that is known.
func markBefore(
	ctx context.Context, stream jetstream.Stream, foreign *jetstream.RawStreamMsg, first uint64,
	known Mark,
) (shardMark, error) {
	for at := foreign.Sequence - 1; at >= max(first, 1); at-- {
		if at == known.Sequence && known.Position > 0 {
			known.Records = 0
			return known.shardMark, nil
		}
		m, err := stream.GetMsg(ctx, at)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return shardMark{}, err
		}
		if err != nil || m.Subject != foreign.Subject {
			continue
		}
		if mark, err := parseMark(m.Data); err == nil {
			mark.Records = 0 // none follows the foreign message
			return mark, nil
		}
	}
	return shardMark{}, nil
}

// torn reports whether the records of a mark are missing, as they can be when a broker
// that does not sync lost power in the middle of a batch.
func torn(
	ctx context.Context, stream jetstream.Stream, mark *jetstream.RawStreamMsg, m *shardMark,
) (bool, error) {
	if m.Records == 0 {
		return false, nil
	}
	last, err := stream.GetMsg(ctx, mark.Sequence+uint64(m.Records))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return last.Header.Get(request.HeaderBatchID) != mark.Header.Get(request.HeaderBatchID), nil
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
	for subject := range info.State.Subjects {
		if shard, isShard := names.shardOf(subject); isShard {
			mark, err := lastMark(ctx, js, names, shard, Mark{})
			if err != nil {
				return nil, err
			}
			list = append(list, mark)
		}
	}
	slices.SortFunc(list, func(a, b Mark) int { return cmp.Compare(a.Shard, b.Shard) })
	return list, nil
}

// WatchMarks calls take for the newest mark of every shard, and for each that is stored afterwards,
// until ctx ends. Of emissions in several parts only the last one counts. Marks of other logs are
// ignored.
func WatchMarks(
	ctx context.Context, js jetstream.JetStream, names Names, log string, take func(Mark),
) {
	feed := &request.Feed{
		JS:       js,
		Stream:   names.Estimates,
		Subjects: []string{names.markSubjects()},
		Newest:   true,
	}
	defer feed.Stop()
	for {
		m, err := feed.Next(ctx)
		if err != nil {
			return
		}
		mark, err := parseMark(m.Data())
		shard, isShard := names.shardOf(m.Subject())
		if err == nil && isShard && mark.Log == log && mark.Part == mark.Parts {
			take(Mark{shardMark: mark, Shard: shard, Sequence: m.Sequence})
		}
	}
}

// Newest returns the cursor of a reader that has read everything published so far. With several
// shards it is the cursor of the slowest shard. Emissions of other shards beyond it may be read
// again.
func Newest(ctx context.Context, js jetstream.JetStream, c ReaderConfig) (Cursor, error) {
	shards := max(c.Shards, 1)
	newest := Cursor{Place: Place{Position: math.MaxUint64}, Sequence: math.MaxUint64}
	for shard := range shards {
		found, err := lastMark(ctx, js, c.Names, shard, Mark{})
		if err != nil {
			return Cursor{}, fmt.Errorf("stream %s: %w", c.Names.Estimates, err)
		}
		position, sequence := found.complete(), found.Sequence-1
		if position == 0 || found.Log != c.Log {
			return Cursor{}, nil
		}
		if position == found.Position && shards == 1 {
			sequence = found.Sequence + uint64(found.Records)
		}
		if position < newest.Position {
			newest.Digest = ""
			if position == found.Position {
				newest.Digest = found.Digest
			}
		}
		newest.Position = min(newest.Position, position)
		newest.Sequence = min(newest.Sequence, sequence)
	}
	stream, _, err := leader(ctx, js, c.Names.Estimates)
	if err != nil {
		return Cursor{}, fmt.Errorf("stream %s: %w", c.Names.Estimates, err)
	}
	// else the feed reads from the beginning
	if m, err := stream.GetMsg(ctx, newest.Sequence); err == nil {
		newest.Stamp = m.Time.UnixNano()
	}
	return newest, nil
}
