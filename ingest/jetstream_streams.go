package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// StreamNames are the streams and the bucket that a pipeline uses. Their subjects
// are fixed, so one NATS account holds one set.
type StreamNames struct {
	Log        string // all events; gql.<kind>
	Quarantine string // what was refused; gqlq.<kind>
	Estimates  string // what is published; gqlest.estimate.<community>
	Latest     string // key-value bucket with the latest estimate of each community
}

// DefaultStreamNames returns the names that are used without configuration.
func DefaultStreamNames() StreamNames {
	return StreamNames{
		Log: "GQL", Quarantine: "GQL_QUARANTINE", Estimates: "GQL_ESTIMATES", Latest: "gql_estimates",
	}
}

// Subjects outside the log.
const (
	QuarantineSubjects = "gqlq.>"
	EstimateSubjects   = "gqlest.>"
)

// Settings of the streams that EnsureStreams creates.
const (
	dedupeWindow       = 2 * time.Minute
	quarantineBytesMax = 1 << 30
	quarantineAgeMax   = 30 * 24 * time.Hour // its originals are in the log; people's data must not pile up
	estimatesBytesMax  = 4 << 30
	latestHistory      = 1
)

// EnsureStreams creates the streams and the bucket that do not exist, and audits
// the log if it does (see AuditStream). Streams that exist are left as they are.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, names StreamNames) error {
	log, err := ensureStream(ctx, js, logConfig(names.Log))
	if err != nil {
		return err
	}
	if err := AuditStream(log.CachedInfo().Config); err != nil {
		return err
	}
	for _, config := range []jetstream.StreamConfig{
		quarantineConfig(names.Quarantine), estimatesConfig(names.Estimates),
	} {
		if _, err := ensureStream(ctx, js, config); err != nil {
			return err
		}
	}
	return ensureBucket(ctx, js, names.Latest)
}

// EnsureLog creates only the log, for commands that publish, and audits it.
func EnsureLog(ctx context.Context, js jetstream.JetStream, name string) error {
	log, err := ensureStream(ctx, js, logConfig(name))
	if err != nil {
		return err
	}
	return AuditStream(log.CachedInfo().Config)
}

func logConfig(name string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: "gqlstream: the log of all events",
		Subjects:    []string{event.SubjectPrefix + ">"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		DenyDelete:  true,
		Duplicates:  dedupeWindow,
		AllowDirect: true,
	}
}

func quarantineConfig(name string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: "gqlstream: copies of what was refused, with the reasons",
		Subjects:    []string{QuarantineSubjects},
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    quarantineBytesMax,
		MaxAge:      quarantineAgeMax,
		Duplicates:  dedupeWindow,
		AllowDirect: true,
	}
}

func estimatesConfig(name string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: "gqlstream: published estimates",
		Subjects:    []string{EstimateSubjects},
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardOld,
		MaxBytes:    estimatesBytesMax,
		Duplicates:  dedupeWindow,
		AllowDirect: true,
	}
}

// ensureStream creates a stream, or returns the one of that name as it is.
func ensureStream(
	ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig,
) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, config)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was first
			stream, err = js.Stream(ctx, config.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ingest: stream %s: %w", config.Name, err)
	}
	return stream, nil
}

func ensureBucket(ctx context.Context, js jetstream.JetStream, name string) error {
	_, err := js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, Description: "gqlstream: the latest estimates", History: latestHistory,
			Storage: jetstream.FileStorage,
		})
		if errors.Is(err, jetstream.ErrBucketExists) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("ingest: bucket %s: %w", name, err)
	}
	return nil
}
