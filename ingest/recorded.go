package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
)

// limitsKey is where the settings of a log say what its events may make a pipeline hold.
const limitsKey = "gqlstream.limits"

// RecordLimits returns the limits that a log has in its settings. Where there are none yet,
// it records those that are wanted. What is refused depends on them, and so every result:
// they are of the log, not of the machine that happens to read it.
func RecordLimits(
	ctx context.Context,
	js jetstream.JetStream,
	stream string,
	want event.Limits,
) (event.Limits, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return want, fmt.Errorf("ingest: stream %s: %w", stream, err)
	}
	if have, err := recordedLimits(s.CachedInfo().Config); err != nil || have != (event.Limits{}) {
		return have, err
	}
	text, err := json.Marshal(want)
	if err != nil {
		return want, err
	}
	return want, record(ctx, js, s, limitsKey, string(text))
}

// NameLog records the name of a log; see broker.LogName.
func NameLog(ctx context.Context, js jetstream.JetStream, stream, name string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("ingest: stream %s: %w", stream, err)
	}
	return record(ctx, js, s, broker.LogNameKey, name)
}

// record writes into the settings of a stream that was just looked up.
func record(
	ctx context.Context,
	js jetstream.JetStream,
	s jetstream.Stream,
	key, text string,
) error {
	config := s.CachedInfo().Config
	config.Metadata = maps.Clone(config.Metadata)
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	config.Metadata[key] = text
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("ingest: stream %s: record %s: %w", config.Name, key, err)
	}
	return nil
}

// recordedLimits returns the limits in the settings of a log, or none.
func recordedLimits(c jetstream.StreamConfig) (l event.Limits, err error) {
	text := c.Metadata[limitsKey]
	if text == "" {
		return l, nil
	}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("ingest: stream %s: metadata %s: %w", c.Name, limitsKey, err)
	}
	return l, nil
}

// skipSubjects returns the prefix of the subjects on which a log records the messages that are passed over, one
// subject a range. A record may stand long after its messages; every source reads all of them before it begins.
func skipSubjects(stream string) string { return broker.Subjects(stream) + "skip." }

// Range is a range of positions. Both ends belong to it.
type Range struct{ First, Last event.Position }

// ParseRange reads POSITION or FIRST-LAST.
func ParseRange(text string) (r Range, ok bool) {
	first, last, several := strings.Cut(text, "-")
	if !several {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 64)
	until, err1 := strconv.ParseUint(last, 10, 64)
	r = Range{event.Position(from), event.Position(until)}
	return r, err == nil && err1 == nil && r.First > 0 && r.First <= r.Last
}

func (r Range) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Skip records in the log that messages are passed over from now on, by every run and
// every replay: one that this version of the program cannot bear, say, or some that the broker
// has lost. A message stays where it is, and becomes a refusal. A state that has applied it does
// not change.
func Skip(ctx context.Context, js jetstream.JetStream, stream string, r Range) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("ingest: stream %s: %w", stream, err)
	}
	if state := s.CachedInfo().State; uint64(r.Last) > state.LastSeq {
		return fmt.Errorf(
			"ingest: skip %s: stream %s has the messages %d to %d",
			r,
			stream,
			state.FirstSeq,
			state.LastSeq,
		)
	}
	if _, err := js.Publish(ctx, skipSubjects(stream)+r.String(), nil); err != nil {
		return fmt.Errorf("ingest: skip %s: %w", r, err)
	}
	return nil
}

// skips are the ranges that a log says are passed over.
type skips []Range

// has reports whether every position of a range is passed over.
func (list skips) has(r Range) bool {
	for moved := true; moved && r.First <= r.Last; {
		moved = false
		for _, one := range list {
			if one.First <= r.First && r.First <= one.Last {
				r.First, moved = one.Last+1, true
			}
		}
	}
	return r.First > r.Last
}

// skippedMessages returns the positions that the log says are passed over.
func skippedMessages(ctx context.Context, s jetstream.Stream) (list skips, err error) {
	stream := s.CachedInfo().Config.Name
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(skipSubjects(stream)+">"))
	if err != nil {
		return nil, fmt.Errorf("ingest: stream %s: skipped messages: %w", stream, err)
	}
	for subject := range info.State.Subjects {
		if r, ok := ParseRange(strings.TrimPrefix(subject, skipSubjects(stream))); ok {
			list = append(list, r)
		}
	}
	return list, nil
}

// passOver takes a message in that is not decoded: a record of Skip, or a message that one is about.
func (s *JetStreamSource) passOver(m stored, kind event.Kind, b *event.Batch) bool {
	if strings.HasPrefix(m.Subject(), s.skips) {
		return true
	}
	if !s.skipped.has(Range{m.Position, m.Position}) {
		return false
	}
	b.Refused = append(b.Refused, event.Refusal{
		Position: m.Position, Index: -1, Kind: kind, Reason: event.Skipped,
		Detail: "the log records that this message is passed over", Original: m.Data(),
	})
	return true
}
