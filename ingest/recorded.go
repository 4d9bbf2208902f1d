package ingest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
)

// limitsKey is the setting of a log that records the limits on its content.
const limitsKey = "gqlstream.limits"

// RecordLimits returns the limits recorded in the settings of a log. If there are none, it records
// those given. Refusals depend on the limits, and so does every result: they belong to the log, not
// to the machine that reads it.
func RecordLimits(
	ctx context.Context, js jetstream.JetStream, stream string, want event.Limits,
) (event.Limits, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return want, fmt.Errorf("stream %s: %w", stream, err)
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
		return fmt.Errorf("stream %s: %w", stream, err)
	}
	return record(ctx, js, s, broker.LogNameKey, name)
}

// record writes a setting of a stream that was just looked up.
func record(
	ctx context.Context, js jetstream.JetStream, s jetstream.Stream, key, text string,
) error {
	config := s.CachedInfo().Config
	config.Metadata = maps.Clone(config.Metadata)
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	config.Metadata[key] = text
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("stream %s: record %s: %w", config.Name, key, err)
	}
	return nil
}

// recordedLimits returns the limits recorded in the settings of a log, or none.
func recordedLimits(c jetstream.StreamConfig) (l event.Limits, err error) {
	text := c.Metadata[limitsKey]
	if text == "" {
		return l, nil
	}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("stream %s: metadata %s: %w", c.Name, limitsKey, err)
	}
	return l, nil
}

// ticksKey is the setting of a log that records the secret of TickSecret.
const ticksKey = "gqlstream.ticks"

// TickSecret returns the secret within the ids of a group's ticks, and records a random one if
// there is none. Only those who may read the settings of the log know it. Two workers that record
// one at the same time may use different ones until they restart: the log then has more ticks than
// it needs.
func TickSecret(ctx context.Context, js jetstream.JetStream, stream string) (string, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return "", fmt.Errorf("stream %s: %w", stream, err)
	}
	if secret := s.CachedInfo().Config.Metadata[ticksKey]; secret != "" {
		return secret, nil
	}
	secret := rand.Text()
	return secret, record(ctx, js, s, ticksKey, secret)
}

// skippedKey is the setting of a log that lists the skipped positions: 17,20-25. It is a setting,
// not a message, because changing it needs the right to manage the stream. So no producer can skip
// a message, and no acknowledgement or reply of the broker or of a run can be abused for it.
const skippedKey = "gqlstream.skipped"

// skippedMax bounds the ranges: the broker bounds the settings of a stream.
const skippedMax = 2000

// Range is a range of positions, including both ends.
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

// Skip records in the settings of the log that every run and every replay skips these messages from
// now on: for example one that this version of the program cannot process, or some that the broker
// has lost. A skipped message stays in the log and becomes a refusal. A state that has applied it
// already does not change.
func Skip(ctx context.Context, js jetstream.JetStream, stream string, r Range) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("stream %s: %w", stream, err)
	}
	if state := s.CachedInfo().State; uint64(r.Last) > state.LastSeq {
		return fmt.Errorf("skip %s: stream %s has the messages %d to %d",
			r, stream, state.FirstSeq, state.LastSeq)
	}
	list, err := skippedMessages(s.CachedInfo().Config)
	if err != nil || list.has(r) {
		return err
	}
	if len(list) >= skippedMax {
		return fmt.Errorf("skip %s: stream %s already skips %d ranges, the maximum",
			r, stream, skippedMax)
	}
	return record(ctx, js, s, skippedKey, append(list, r).String())
}

// skips are the skipped ranges of a log.
type skips []Range

// has reports whether every position of a range is skipped.
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

// String returns the ranges in the form of the setting.
func (list skips) String() string {
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// skippedMessages returns the skipped positions in the settings of a log.
func skippedMessages(c jetstream.StreamConfig) (list skips, err error) {
	text := c.Metadata[skippedKey]
	if text == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		r, ok := ParseRange(one)
		if !ok {
			return nil,
				fmt.Errorf("stream %s: metadata %s: %q is neither a position nor a range",
					c.Name, skippedKey, one)
		}
		list = append(list, r)
	}
	return list, nil
}

// refuseSkipped refuses a message, without decoding it, if its position is skipped.
func (s *JetStreamSource) refuseSkipped(m stored, kind event.Kind, b *event.Batch) bool {
	if !s.skipped.has(Range{m.Position, m.Position}) {
		return false
	}
	b.Refused = append(b.Refused, event.Refusal{
		Position: m.Position, Index: -1, Kind: kind, Reason: event.Skipped,
		Detail: "the settings of the log skip this message", Original: m.Data(),
	})
	return true
}
