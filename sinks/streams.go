package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// Settings of the streams that ensureStreams creates.
const (
	EstimatesBytesDefault = 1 << 30
	alertsBytesMax        = 64 << 20
	// of what is made from the log, where an account requires a limit
	derivedBytesMax = 256 << 20
)

// StreamsConfig configures the streams of the output log and of its followers.
type StreamsConfig struct {
	Names    Names
	Bytes    int64 // of the estimates; oldest are discarded; 0: EstimatesBytesDefault
	Replicas int   // of every stream; 0: 1
	Classes  int   // that a record has shares of
	Embedded bool  // the server ends with us: the bucket may be written behind its acknowledgement
}

// tooOld reports whether a broker lacks atomic batches, which version 2.12 introduced. An
// unreadable version is too old.
func tooOld(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d.", &major, &minor)
	return n < 2 || major < 2 || major == 2 && minor < 12
}

// ensureStreams creates the stream of estimates, that of alerts and the bucket of
// latest values where they do not exist, and brings the settings on which the output log
// depends up to date where they do. The bucket is a copy that the broker keeps of the
// newest message of each subject; nobody else writes it.
func ensureStreams(ctx context.Context, js jetstream.JetStream, c StreamsConfig) error {
	if version := js.Conn().ConnectedServerVersion(); tooOld(version) {
		return fmt.Errorf(
			"the NATS server has version %q, and estimates need atomic batches, which "+
				"begin with 2.12.0: upgrade the server",
			version)
	}
	of, err := ensureStream(ctx, js, c.estimates())
	if err != nil {
		return err
	}
	if _, err := ensureStream(ctx, js, c.alerts()); err != nil {
		return err
	}
	have, err := js.Stream(ctx, c.latest().Name)
	if err == nil &&
		// it waits for sequences of another stream
		(have.CachedInfo().Created.Before(of.CachedInfo().Created) ||
			// which cannot be changed
			have.CachedInfo().Config.PersistMode != c.latest().PersistMode) {
		if err := js.DeleteStream(ctx, c.latest().Name); err != nil &&
			!errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("bucket %s: %w", c.Names.Latest, err)
		}
	}
	_, err = ensureStream(ctx, js, c.latest())
	return err
}

// estimates are acknowledged when they are on the disk, as far as the broker guarantees that at
// all. The leader alone answers gets: a lagging replica must not decide which records have been
// published.
func (c *StreamsConfig) estimates() jetstream.StreamConfig {
	s := c.stream(c.Names.Estimates, "published estimates")
	s.Subjects = []string{c.Names.markSubjects(), c.Names.estimateSubjects()}
	s.AllowAtomicPublish, s.Discard, s.MaxBytes = true, jetstream.DiscardOld, cmp.Or(c.Bytes,
		EstimatesBytesDefault)
	return s
}

func (c *StreamsConfig) alerts() jetstream.StreamConfig {
	s := c.stream(c.Names.Alerts, "beginnings and ends of alerts")
	s.Subjects = []string{c.Names.alertSubjects()}
	s.AllowAtomicPublish = true
	s.Discard = jetstream.DiscardOld
	s.MaxBytes = alertsBytesMax
	return s
}

// history holds the roll-ups of one resolution. The broker keeps, for each community and method,
// enough roll-ups for the retention time, however fast a log is read. Roll-ups of communities
// without further records are removed by age.
func (c *StreamsConfig) history(row resolutionRow) jetstream.StreamConfig {
	r := row.name
	s := c.stream(c.Names.historyStream(r), "roll-ups of the estimates by "+string(r))
	s.Subjects = []string{c.Names.historySubjects(r)}
	if row.keep > 0 {
		s.MaxMsgsPerSubject = int64(int(row.keep/row.chunk)+1) * row.messages(c.Classes)
		s.MaxAge = row.keep + row.chunk
	}
	if r == days {
		s.Subjects = append(s.Subjects, c.Names.noteSubject())
	}
	// and no compression, which costs copies; see TestNoStreamIsCompressed
	s.AllowAtomicPublish = true
	return s
}

// latest is the stream of a key-value bucket, with the usual settings, that sources the estimates.
// On the embedded server it may lose its end when the process is killed: the broker then copies the
// rest again.
func (c *StreamsConfig) latest() jetstream.StreamConfig {
	s := c.stream(c.Names.LatestStream(), "the latest estimates")
	s.Sources = []*jetstream.StreamSource{{
		Name: c.Names.Estimates,
		SubjectTransforms: []jetstream.SubjectTransformConfig{{
			Source: c.Names.estimateSubjects(), Destination: "$KV." + c.Names.Latest + ".>",
		}},
	}}
	s.Discard, s.MaxMsgsPerSubject = jetstream.DiscardNew, 1
	s.AllowRollup = true
	s.DenyDelete = true
	s.AllowDirect = true
	if s.Replicas <= 1 && c.Embedded {
		s.PersistMode = jetstream.AsyncPersistMode
	}
	return s
}

func (c *StreamsConfig) stream(name, description string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: "gqlstream: " + description,
		Storage:     jetstream.FileStorage,
		Replicas:    max(c.Replicas, 1),
	}
}

// ensureStream creates a stream, or corrects the relevant settings of an existing one.
func ensureStream(
	ctx context.Context,
	js jetstream.JetStream,
	want jetstream.StreamConfig,
) (stream jetstream.Stream, err error) {
	stream, err = request.EnsureStream(ctx, js, want)
	if request.BytesRequired(err) && want.MaxBytes <= 0 {
		want.MaxBytes = derivedBytesMax
		stream, err = request.EnsureStream(ctx, js, want)
	}
	if err == nil {
		err = request.AuditReplicas(stream, want.Replicas)
	}
	if err != nil {
		return nil, err
	}
	have := stream.CachedInfo().Config
	if have.AllowAtomicPublish == want.AllowAtomicPublish && have.Compression == want.Compression &&
		slices.Equal(have.Subjects, want.Subjects) &&
		len(have.Sources) == len(want.Sources) &&
		(have.PersistMode == want.PersistMode || !want.AllowAtomicPublish) &&
		(want.MaxAge == 0 ||
			have.MaxAge == want.MaxAge && have.MaxMsgsPerSubject == want.MaxMsgsPerSubject) {
		return stream, nil
	}
	if want.MaxAge > 0 {
		have.MaxAge = want.MaxAge
		have.MaxMsgsPerSubject = want.MaxMsgsPerSubject
	}
	have.AllowAtomicPublish = want.AllowAtomicPublish
	have.Subjects = want.Subjects
	have.PersistMode = want.PersistMode
	have.Sources = want.Sources
	have.Compression = want.Compression
	if _, err := js.UpdateStream(ctx, have); err != nil {
		return nil, fmt.Errorf(
			"stream %s was made with settings of an earlier version, which cannot be "+
				"changed (%w):"+
				" delete the stream, or choose another prefix; it is made from the log again",
			want.Name,
			err,
		)
	}
	return stream, nil
}

// prefixDefault is the prefix of streams and subjects where none is configured.
const prefixDefault = "gql"

// prefixBytesMax keeps the names of streams and buckets within the limits of brokers.
const prefixBytesMax = 64

// Names are the streams, the bucket and the subjects of one pipeline's output log. All of
// them hang on one prefix, so that several pipelines share a server.
type Names struct {
	Estimates string // stream: marks and records
	Alerts    string // stream: beginnings and ends of alerts
	History   string // stream: roll-ups by day, and notes
	Latest    string // bucket: the newest record of each community and method
	subjects  string // prefix of the subjects of the output log
}

// NewNames returns the names that hang on a prefix of letters, digits, "-" and "_";
// the empty one is prefixDefault.
func NewNames(prefix string) (Names, error) {
	prefix = cmp.Or(prefix, prefixDefault)
	if len(prefix) > prefixBytesMax || Token(prefix) != prefix {
		return Names{}, fmt.Errorf(
			"%q: want at most %d letters, digits, \"-\" and \"_\"",
			prefix, prefixBytesMax)
	}
	upper, lower := strings.ToUpper(prefix), strings.ToLower(prefix)
	return Names{
		Estimates: upper + "_ESTIMATES", Alerts: upper + "_ALERTS", History: upper + "_HISTORY",
		Latest: lower + "_estimates", subjects: lower + "est",
	}, nil
}

// MarkSubject returns the subject of the marks of a shard.
func (n Names) MarkSubject(shard int) string { return n.subjects + ".shard." + strconv.Itoa(shard) }

// shardOf returns the shard of a mark's subject.
func (n Names) shardOf(subject string) (shard int, ok bool) {
	text, ok := strings.CutPrefix(subject, strings.TrimSuffix(n.markSubjects(), "*"))
	shard, err := strconv.Atoi(text)
	return shard, ok && err == nil && shard >= 0
}

// EstimateSubject returns the subject of the records of a community by a method; see LatestKey.
func (n Names) EstimateSubject(community, method string, ordinal int) string {
	return n.subjects + ".estimate." + LatestKey(community, method, ordinal)
}

// LatestKey returns the key of a community and a method in the bucket. A method that is configured
// several times has the keys n = 0, 1, ... in the order of the configuration.
func LatestKey(community, method string, n int) string {
	key := Token(community) + "." + Token(method)
	if n > 0 {
		key += "." + strconv.Itoa(n)
	}
	return key
}

// historySubject returns the subject of the roll-ups of a resolution.
func (n Names) historySubject(r Resolution, community, method string) string {
	return n.subjects + ".history." + string(r) + "." + LatestKey(community, method, 0)
}

// historyStream returns the stream of the roll-ups of a resolution. Each has its own, so that
// a reader of hours does not read past the minutes of all communities.
func (n Names) historyStream(r Resolution) string {
	if r == days {
		return n.History
	}
	return n.History + "_" + strings.ToUpper(string(r)) + "S"
}

// HistoryStreams lists the streams of the roll-ups, from the finest.
func (n Names) HistoryStreams() (names []string) {
	for _, row := range resolutions {
		names = append(names, n.historyStream(row.name))
	}
	return names
}

// LatestStream returns the stream of the bucket of latest values.
func (n Names) LatestStream() string { return "KV_" + n.Latest }

// noteSubject returns the subject of the notes in the stream of history.
func (n Names) noteSubject() string { return n.subjects + ".history.note" }

// AlertSubject returns the subject of the alerts of a rule on a community.
func (n Names) AlertSubject(rule, community string) string {
	return n.subjects + ".alert." + Token(rule) + "." + Token(community)
}

// Queries returns the prefix of the subjects of questions.
func (n Names) Queries() string { return n.subjects + ".query" }

// The patterns of all marks, all records, all alerts and all roll-ups of a resolution.
func (n Names) markSubjects() string     { return n.subjects + ".shard.*" }
func (n Names) estimateSubjects() string { return n.subjects + ".estimate.>" }
func (n Names) alertSubjects() string    { return n.subjects + ".alert.>" }
func (n Names) historySubjects(r Resolution) string {
	return n.subjects + ".history." + string(r) + ".>"
}

// Token returns a name as one token of a NATS subject, which is also a part of a key in a bucket:
// letters, digits, "-" and "_" are unchanged, any other byte becomes "=" and two hexadecimal
// digits, and the empty name is "=". Different names have different tokens.
func Token(name string) string {
	return cmp.Or(escapedBytes.Replace(url.QueryEscape(name)), "=")
}

// escapedBytes turns the escapes of a URL query, which leaves three more bytes unchanged, into
// those of a token.
var escapedBytes = strings.NewReplacer("%", "=", "+", "=20", ".", "=2E", "~", "=7E")
