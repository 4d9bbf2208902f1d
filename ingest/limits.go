package ingest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// limitsKey is where the settings of a log say what its events may make a pipeline hold.
const limitsKey = "gqlstream.limits"

// RecordLimits returns the limits that a log has in its settings. Where there are none yet,
// it records those that are wanted. What is refused depends on them, and so every result:
// they are of the log, not of the machine that happens to read it.
func RecordLimits(ctx context.Context, js jetstream.JetStream, stream string, want event.Limits) (event.Limits, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return want, fmt.Errorf("ingest: stream %s: %w", stream, err)
	}
	config := s.CachedInfo().Config
	if have, err := recordedLimits(config); err != nil || have != (event.Limits{}) {
		return have, err
	}
	text, err := json.Marshal(want)
	if err != nil {
		return want, err
	}
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	config.Metadata[limitsKey] = string(text)
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return want, fmt.Errorf("ingest: stream %s: record the limits: %w", stream, err)
	}
	return want, nil
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
