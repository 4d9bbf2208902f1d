package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/request"
)

// Settings of the streams that ensureStreams creates.
const (
	EstimatesBytesDefault = 1 << 30
	alertsBytesMax        = 64 << 20
)

// serverVersionMin is the first version of a broker that stores atomic batches.
var serverVersionMin = [3]int{2, 12, 0}

// StreamsConfig configures the streams of the log out and of its followers.
type StreamsConfig struct {
	Names    Names
	Bytes    int64 // of the estimates; oldest are discarded; 0: EstimatesBytesDefault
	Replicas int   // of every stream; 0: 1
	Embedded bool  // the server ends with us: the bucket may be written behind its acknowledgement
}

// checkServer returns an error if the broker is too old for the log out.
func checkServer(nc *nats.Conn) error {
	text := nc.ConnectedServerVersion()
	if !versionAtLeast(text, serverVersionMin) {
		return fmt.Errorf("sinks: the NATS server has version %q, and estimates need atomic batches, which"+
			" begin with %d.%d.%d: upgrade the server", text, serverVersionMin[0], serverVersionMin[1], serverVersionMin[2])
	}
	return nil
}

// versionAtLeast compares "2.12.1-beta.3" with what is needed; what is no version is too old.
func versionAtLeast(text string, least [3]int) bool {
	var have [3]int
	n, _ := fmt.Sscanf(text, "%d.%d.%d", &have[0], &have[1], &have[2])
	return n == len(have) && slices.Compare(have[:], least[:]) >= 0
}

// ensureStreams creates the stream of estimates, that of alerts and the bucket of
// latest values where they do not exist, and brings the settings on which the log out
// depends up to date where they do. The bucket is a copy that the broker keeps of the
// newest message of each subject; nobody else writes it.
func ensureStreams(ctx context.Context, js jetstream.JetStream, c StreamsConfig) error {
	if err := checkServer(js.Conn()); err != nil {
		return err
	}
	of, err := ensureStream(ctx, js, c.estimates())
	if err != nil {
		return err
	}
	if _, err := ensureStream(ctx, js, c.alerts()); err != nil {
		return err
	}
	have, err := js.Stream(ctx, c.latest().Name)
	if err == nil && (have.CachedInfo().Created.Before(of.CachedInfo().Created) || // it waits for sequences of another stream
		have.CachedInfo().Config.PersistMode != c.latest().PersistMode) { // which cannot be changed
		if err := js.DeleteStream(ctx, c.latest().Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("sinks: bucket %s: %w", c.Names.Latest, err)
		}
	}
	_, err = ensureStream(ctx, js, c.latest())
	return err
}

// estimates are acknowledged when they are on the disk, as far as the broker promises that at all.
// Gets are answered by the leader alone: a replica that lags must not decide what was published.
func (c *StreamsConfig) estimates() jetstream.StreamConfig {
	s := c.stream(c.Names.Estimates, "published estimates")
	s.Subjects = []string{c.Names.markSubjects(), c.Names.estimateSubjects()}
	s.AllowAtomicPublish, s.Discard, s.MaxBytes = true, jetstream.DiscardOld, cmp.Or(c.Bytes, EstimatesBytesDefault)
	return s
}

func (c *StreamsConfig) alerts() jetstream.StreamConfig {
	s := c.stream(c.Names.Alerts, "beginnings and ends of alerts")
	s.Subjects = []string{c.Names.alertSubjects()}
	s.AllowAtomicPublish, s.Discard, s.MaxBytes = true, jetstream.DiscardOld, alertsBytesMax
	return s
}

// history holds the roll-ups of a resolution. Nothing is discarded by the broker; the follower
// that writes it removes what is too old.
func (c *StreamsConfig) history(r Resolution) jetstream.StreamConfig {
	s := c.stream(c.Names.historyStream(r), "roll-ups of the estimates by "+string(r))
	s.Subjects = []string{c.Names.historySubjects(r)}
	if r == days {
		s.Subjects = append(s.Subjects, c.Names.noteSubject())
	}
	s.AllowAtomicPublish = true // and no compression, which costs copies; see TestNoStreamIsCompressed
	return s
}

// latest is the stream behind a key-value bucket, as every client makes it, but that it
// sources the estimates. Embedded it may lose its end when the process is killed: the broker
// then copies on from what it has.
func (c *StreamsConfig) latest() jetstream.StreamConfig {
	s := c.stream("KV_"+c.Names.Latest, "the latest estimates")
	s.Sources = []*jetstream.StreamSource{{
		Name: c.Names.Estimates,
		SubjectTransforms: []jetstream.SubjectTransformConfig{{
			Source: c.Names.estimateSubjects(), Destination: "$KV." + c.Names.Latest + ".>",
		}},
	}}
	s.Discard, s.MaxMsgsPerSubject = jetstream.DiscardNew, 1
	s.AllowRollup, s.DenyDelete, s.AllowDirect = true, true, true
	if s.Replicas <= 1 && c.Embedded {
		s.PersistMode = jetstream.AsyncPersistMode
	}
	return s
}

func (c *StreamsConfig) stream(name, description string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Description: "gqlstream: " + description, Storage: jetstream.FileStorage, Replicas: max(c.Replicas, 1),
	}
}

// ensureStream creates a stream, or changes the settings that matter of one that is there.
func ensureStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (stream jetstream.Stream, err error) {
	if stream, err = request.EnsureStream(ctx, js, want); err == nil {
		err = request.AuditReplicas(stream, want.Replicas)
	}
	if err != nil {
		return nil, fmt.Errorf("sinks: %w", err)
	}
	have := stream.CachedInfo().Config
	if have.AllowAtomicPublish == want.AllowAtomicPublish && have.Compression == want.Compression && slices.Equal(have.Subjects, want.Subjects) &&
		len(have.Sources) == len(want.Sources) && (have.PersistMode == want.PersistMode || !want.AllowAtomicPublish) {
		return stream, nil
	}
	have.AllowAtomicPublish, have.Subjects = want.AllowAtomicPublish, want.Subjects
	have.PersistMode, have.Sources, have.Compression = want.PersistMode, want.Sources, want.Compression
	if _, err := js.UpdateStream(ctx, have); err != nil {
		return nil, fmt.Errorf("sinks: stream %s was made with settings of an earlier version, which cannot be changed (%w):"+
			" delete the stream, or choose another prefix; it is made from the log again", want.Name, err)
	}
	return stream, nil
}
