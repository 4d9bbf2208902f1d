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
	Alerts     string // beginnings and ends of alerts; gqlest.alert.<rule>.<community>
}

// DefaultStreamNames returns the names that are used without configuration.
func DefaultStreamNames() StreamNames {
	return StreamNames{
		Log: "GQL", Quarantine: "GQL_QUARANTINE", Estimates: "GQL_ESTIMATES", Latest: "gql_estimates",
		Alerts: "GQL_ALERTS",
	}
}

// Subjects outside the log.
const (
	QuarantineSubjects = "gqlq.>"
	EstimateSubjects   = "gqlest.estimate.>"
	AlertSubjects      = "gqlest.alert.>"

	estimateSubjectsOnce = "gqlest.>" // of GQL_ESTIMATES before there were alerts
)

// Settings of the streams that EnsureStreams creates.
const (
	dedupeWindow       = 2 * time.Minute
	quarantineBytesMax = 256 << 20
	quarantineAgeMax   = 30 * 24 * time.Hour // its originals are in the log; people's data must not pile up
	estimatesBytesMax  = 1 << 30
	alertsBytesMax     = 64 << 20
	streamBytesMin     = 1 << 20
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
		quarantineConfig(names.Quarantine), estimatesConfig(names.Estimates), latestConfig(names.Latest),
		alertsConfig(names.Alerts),
	} {
		stream, err := ensureStream(ctx, js, config)
		if err != nil {
			return err
		}
		if err := narrowSubjects(ctx, js, stream.CachedInfo().Config); err != nil {
			return err
		}
	}
	return nil
}

// narrowSubjects makes room for the subjects of alerts in a stream of estimates that
// was made before there were any.
func narrowSubjects(ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig) error {
	if len(config.Subjects) != 1 || config.Subjects[0] != estimateSubjectsOnce {
		return nil
	}
	config.Subjects = []string{EstimateSubjects}
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("ingest: stream %s: subjects %s: %w", config.Name, EstimateSubjects, err)
	}
	return nil
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

// estimatesConfig lets the broker acknowledge estimates before they are on the
// disk: to sync each of a thousand in an emission takes 100 to 250 ms. A killed
// broker loses what it had not written yet, some milliseconds, and a host that
// loses power what it had not synced; a pipeline that starts from an earlier
// checkpoint writes them again, and a replay has them in any case.
func estimatesConfig(name string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: "gqlstream: published estimates",
		Subjects:    []string{EstimateSubjects},
		Storage:     jetstream.FileStorage,
		PersistMode: jetstream.AsyncPersistMode,
		Discard:     jetstream.DiscardOld,
		MaxBytes:    estimatesBytesMax,
		Duplicates:  dedupeWindow,
		AllowDirect: true,
	}
}

// alertsConfig is durable as the log is: alerts are few, and delivery reads them
// from here.
func alertsConfig(name string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: "gqlstream: beginnings and ends of alerts",
		Subjects:    []string{AlertSubjects},
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardOld,
		MaxBytes:    alertsBytesMax,
		Duplicates:  dedupeWindow,
		AllowDirect: true,
	}
}

// ensureStream creates a stream, or returns the one of that name as it is. The
// broker reserves what a stream may grow to; where it has not that much, the limit
// becomes smaller.
func ensureStream(
	ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig,
) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, config)
		for noSpace(err) && config.MaxBytes >= 8*streamBytesMin {
			config.MaxBytes /= 8 // not all that is left: the log needs room
			stream, err = js.CreateStream(ctx, config)
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was first
			stream, err = js.Stream(ctx, config.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ingest: stream %s: %w", config.Name, err)
	}
	return stream, nil
}

func noSpace(err error) bool { return errors.Is(explainPublish(err), ErrNoSpace) }

// latestConfig is the stream behind a key-value bucket, as every client makes it,
// but for PersistMode, which buckets cannot set.
func latestConfig(bucket string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              "KV_" + bucket,
		Description:       "gqlstream: the latest estimates",
		Subjects:          []string{"$KV." + bucket + ".>"},
		Storage:           jetstream.FileStorage,
		PersistMode:       jetstream.AsyncPersistMode,
		Discard:           jetstream.DiscardNew,
		MaxMsgsPerSubject: 1,
		Duplicates:        dedupeWindow,
		AllowRollup:       true,
		DenyDelete:        true,
		AllowDirect:       true,
	}
}
