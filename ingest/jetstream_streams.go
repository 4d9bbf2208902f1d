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

// streamConfig is what all streams of ours have in common: they are on the disk, are read
// directly, and drop repeats within a window.
func streamConfig(name, description, subjects string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Description: "gqlstream: " + description, Subjects: []string{subjects},
		Storage: jetstream.FileStorage, Duplicates: dedupeWindow, AllowDirect: true,
	}
}

func logConfig(name string) jetstream.StreamConfig {
	c := streamConfig(name, "the log of all events", event.SubjectPrefix+">")
	c.Retention, c.Discard, c.DenyDelete = jetstream.LimitsPolicy, jetstream.DiscardNew, true
	return c
}

func quarantineConfig(name string) jetstream.StreamConfig {
	c := streamConfig(name, "copies of what was refused, with the reasons", QuarantineSubjects)
	c.Discard, c.MaxBytes, c.MaxAge = jetstream.DiscardNew, quarantineBytesMax, quarantineAgeMax
	return c
}

// estimatesConfig lets the broker acknowledge estimates before they are on the
// disk: to sync each of a thousand in an emission takes 100 to 250 ms. A killed
// broker loses what it had not written yet, some milliseconds, and a host that
// loses power what it had not synced; a pipeline that starts from an earlier
// checkpoint writes them again, and a replay has them in any case.
func estimatesConfig(name string) jetstream.StreamConfig {
	c := streamConfig(name, "published estimates", EstimateSubjects)
	c.PersistMode = jetstream.AsyncPersistMode
	c.Discard, c.MaxBytes = jetstream.DiscardOld, estimatesBytesMax
	return c
}

// alertsConfig is durable as the log is: alerts are few, and delivery reads them
// from here.
func alertsConfig(name string) jetstream.StreamConfig {
	c := streamConfig(name, "beginnings and ends of alerts", AlertSubjects)
	c.Discard, c.MaxBytes = jetstream.DiscardOld, alertsBytesMax
	return c
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
	c := streamConfig("KV_"+bucket, "the latest estimates", "$KV."+bucket+".>")
	c.PersistMode, c.Discard = jetstream.AsyncPersistMode, jetstream.DiscardNew
	c.MaxMsgsPerSubject, c.AllowRollup, c.DenyDelete = 1, true, true
	return c
}
