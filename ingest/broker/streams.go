package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
	"gqlstream/internal/request"
)

// StreamNames are the streams of a pipeline's input log and of its quarantine. Package sinks has
// the names of the output stream and of its followers.
type StreamNames struct {
	Log        string // all events; on the subjects gql.<kind>, if it is GQL
	Quarantine string // refused events and messages; on the subjects gqlq.<kind>

	// Replicas is the number of servers that must hold each stream. 0: as many as hold the log; a
	// new log in a cluster is held by replicasDefault.
	Replicas int
	LogBytes int64  // limit of a new log; 0: none
	GraphOf  string // a new log copies the graph of this log, now and later; empty: none
	Domain   string // JetStream domain, as in ConnectConfig
}

// replicasDefault is the least number of servers that can lose one while the others still agree.
const replicasDefault = 3

// DefaultStreamNames returns the names that are used without configuration.
func DefaultStreamNames() StreamNames { return NewStreamNames("") }

const prefixDefault = "gql"

// NewStreamNames returns the names with a prefix; the empty prefix is "gql". Several pipelines
// share a server by different prefixes. sinks.NewNames documents the valid prefixes.
func NewStreamNames(prefix string) StreamNames {
	log := strings.ToUpper(cmp.Or(prefix, prefixDefault))
	return StreamNames{Log: log, Quarantine: log + quarantineSuffix}
}

const quarantineSuffix = "_QUARANTINE"

// Subjects returns the prefix of the subjects of a log, and of other names derived from it: that of
// the stream GQL is "gql.".
func Subjects(log string) string { return strings.ToLower(log) + "." }

// Subject returns the subject that carries events of a kind to a log.
func Subject(log string, kind event.Kind) string { return Subjects(log) + kind.String() }

// SubjectKind returns the kind of event of a subject. prefix is that of the log's subjects.
func SubjectKind(prefix, subject string) (event.Kind, bool) {
	name, ok := strings.CutPrefix(subject, prefix)
	if !ok {
		return 0, false
	}
	return event.ParseKind(name)
}

// QuarantineSubjects returns the prefix of the subjects of a quarantine: "gqlq.".
func QuarantineSubjects(quarantine string) string {
	return strings.ToLower(strings.TrimSuffix(quarantine, quarantineSuffix)) + "q."
}

// Settings of the streams that EnsureStreams creates.
const (
	dedupeWindow       = 2 * time.Minute
	quarantineBytesMax = 256 << 20
	// QuarantineAgeMax bounds how long an entry of the quarantine is kept: the log has the
	// originals, and personal data must not pile up here.
	QuarantineAgeMax = 30 * 24 * time.Hour
)

// EnsureStreams creates the log and the quarantine if they do not exist, and audits an existing log
// (see AuditStream). Existing streams are not changed, but are refused if fewer servers hold them
// than required.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, names StreamNames) error {
	log, err := EnsureLog(ctx, js, names)
	if err != nil {
		return err
	}
	quarantine := QuarantineConfig(names.Quarantine)
	quarantine.Replicas = cmp.Or(names.Replicas, log.Replicas)
	stream, err := request.EnsureStream(ctx, js, quarantine)
	if err != nil {
		return err
	}
	return request.AuditReplicas(stream, quarantine.Replicas)
}

// EnsureLog creates only the log, if it does not exist, and audits it. A single server holds one
// copy. A cluster that cannot provide replicasDefault copies now is refused: a log with fewer
// copies could be lost with one machine, without anybody having decided that.
func EnsureLog(
	ctx context.Context, js jetstream.JetStream, names StreamNames,
) (have jetstream.StreamConfig, err error) {
	want := LogConfig(names.Log)
	want.Metadata = map[string]string{LogNameKey: time.Now().UTC().Format(time.RFC3339Nano)}
	want.Replicas = cmp.Or(names.Replicas, replicasDefault)
	if names.LogBytes > 0 {
		want.MaxBytes = names.LogBytes
	}
	if err := copyGraph(ctx, js, names, &want); err != nil {
		return have, err
	}
	stream, err := request.EnsureStream(ctx, js, want)
	var api *jetstream.APIError
	if errors.As(err, &api) && names.Replicas == 0 {
		switch api.ErrorCode {
		case codeNoCluster:
			want.Replicas = 1
			stream, err = request.EnsureStream(ctx, js, want)
		case codeNoPeers:
			err = fmt.Errorf("%w: start the other servers of the cluster, or set "+
				"nats.replicas to the number of servers that keep each stream", err)
		}
	}
	if err != nil {
		return have, err
	}
	have = stream.CachedInfo().Config
	return have, errors.Join(AuditStream(have), request.AuditReplicas(stream, names.Replicas))
}

// LogNameKey is the setting of a log that records its name.
const LogNameKey = "gqlstream.log"

// LogName tells a log from other logs with the same stream name, wherever positions are stored. A
// restored backup keeps the name, and run --accept-log gives a new one. The name of a log of an
// earlier release is its creation time.
func LogName(s jetstream.Stream) string {
	info := s.CachedInfo()
	return cmp.Or(info.Config.Metadata[LogNameKey], info.Created.Format(time.RFC3339Nano))
}

// streamConfig returns the settings that all streams share: they are on disk, allow direct reads,
// and drop repeats within a window.
func streamConfig(name, description, subjects string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Description: "gqlstream: " + description, Subjects: []string{subjects},
		Storage: jetstream.FileStorage, Duplicates: dedupeWindow, AllowDirect: true,
	}
}

// LogConfig keeps all messages, and refuses new ones when it is full.
func LogConfig(name string) jetstream.StreamConfig {
	c := streamConfig(name, "the log of all events", Subjects(name)+">")
	c.Retention = jetstream.LimitsPolicy
	c.Discard = jetstream.DiscardNew
	c.DenyDelete = true
	return c
}

// QuarantineConfig discards the oldest entries when it is full: refusals must never stop accepted
// events, and the log has the originals.
func QuarantineConfig(name string) jetstream.StreamConfig {
	c := streamConfig(name, "copies of refused events, with the reasons",
		QuarantineSubjects(name)+">")
	c.Discard = jetstream.DiscardOld
	c.MaxBytes = quarantineBytesMax
	c.MaxAge = QuarantineAgeMax
	c.AllowAtomicPublish = true
	return c
}

// ErrNoSpace is matched by the error of a broker that refused a message because the log, or the
// whole store, is full. Stored messages are not affected.
var ErrNoSpace = errors.New("the stream is full and refuses new messages: raise its max_bytes," +
	" or free space for the broker (the embedded server notices that a volume has grown when it" +
	" starts again)")

// Error codes of clusters.
const (
	codeNoPeers   jetstream.ErrorCode = 10005 // fewer servers than copies
	codeNoCluster jetstream.ErrorCode = 10074
)

// ExplainError adds the likely cause and the remedy to an error of the broker.
func ExplainError(err error) error {
	if errors.Is(err, ErrNoSpace) || !request.NoSpace(err) {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrNoSpace, err)
}

// AuditStream refuses a stream whose settings let the broker drop, rewrite or withhold events on
// its own: a replay of such a log would give another history. The error lists every unsafe setting
// and the safe value. Limits on bytes and messages are safe with discard new: the broker then
// refuses the producer.
func AuditStream(c jetstream.StreamConfig) error {
	// for settings that cannot be changed
	const anew = "create the stream again and publish the events again"
	var errs []error
	check := func(unsafe bool, setting, why, mend string) {
		if unsafe {
			errs = append(errs, fmt.Errorf("%s: %s; %s", setting, why, mend))
		}
	}
	check(c.Retention != jetstream.LimitsPolicy, "retention",
		"events vanish when consumers acknowledge them or no consumer exists", "set it to limits")
	check(c.MaxAge > 0, "max_age", "old events vanish by time", "set it to 0")
	check(c.Discard != jetstream.DiscardNew, "discard", "old events vanish when a limit is reached",
		"set it to new")
	check(c.MaxMsgsPerSubject > 0, "max_msgs_per_subject", "old events vanish when a kind "+
		"reaches a limit",
		"set it to -1")
	check(c.DiscardNewPerSubject, "discard_new_per_subject", "it applies to a limit per subject",
		"set it to false")
	check(c.AllowMsgTTL, "allow_msg_ttl", "a producer can make events vanish by time",
		anew+" with it off")
	check(c.SubjectDeleteMarkerTTL > 0, "subject_delete_marker_ttl",
		"the broker adds messages when events vanish", "set it to 0")
	check(c.AllowRollup, "allow_rollup_hdrs", "a producer can replace the whole log by one message",
		"set it to false")
	check(!c.DenyDelete, "deny_delete", "single events can be deleted, which leaves gaps",
		anew+" with it on")
	check(c.Mirror != nil, "mirror", "it follows another stream, in which sequences can change",
		"use that stream, or "+anew)
	check(missesTransforms(c), "sources",
		"messages of another stream keep its subjects, which are not subjects of this log",
		"transform each subject to one of this log, such as gql.edge to second.edge")
	check(c.SubjectTransform != nil, "subject_transform",
		"the broker rewrites subjects, which give an event its kind", "remove it")
	check(c.AllowMsgCounter, "allow_msg_counter",
		"the broker adds messages up instead of storing them", anew+" with it off")
	check(c.AllowMsgSchedules, "allow_msg_schedules",
		"the broker publishes messages later, by its clock", anew+" with it off")
	check(c.FirstSeq > 1, "first_seq",
		"the log does not begin at 1, so a lost beginning cannot be noticed", anew+" without it")
	check(missesSubjects(c), "subjects", "the stream does not get all kinds of events",
		"set them to PREFIX.>, where PREFIX is the stream's name in lower case")
	check(c.Storage != jetstream.FileStorage, "storage", "events are in memory only",
		anew+" with file storage")
	check(c.PersistMode == jetstream.AsyncPersistMode, "persist_mode",
		"events are acknowledged before they are written", anew+" with default")
	check(c.NoAck, "no_ack", "producers are not told whether an event was stored",
		"set it to false")
	check(c.Sealed, "sealed", "it takes no new messages, not even the ticks of the run", anew)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("stream %s is not safe as a log:\n%w", c.Name, errors.Join(errs...))
}

// missesTransforms reports whether messages of a source may keep subjects outside the log.
func missesTransforms(c jetstream.StreamConfig) bool {
	return slices.ContainsFunc(c.Sources, func(s *jetstream.StreamSource) bool {
		return len(s.SubjectTransforms) == 0 ||
			slices.ContainsFunc(s.SubjectTransforms, func(x jetstream.SubjectTransformConfig) bool {
				_, ours := SubjectKind(Subjects(c.Name), x.Destination)
				return !ours
			})
	})
}

// missesSubjects reports whether the subjects of some kind of event do not go to the stream.
func missesSubjects(c jetstream.StreamConfig) bool {
	if c.Mirror != nil {
		return false // reported as mirror
	}
	for k := range event.Kinds {
		subject := Subject(c.Name, event.Kind(k))
		prefix := Subjects(c.Name)
		if !slices.ContainsFunc(c.Subjects, func(s string) bool {
			return s == subject || s == prefix+">" || s == prefix+"*" || s == ">"
		}) {
			return true
		}
	}
	return false
}
