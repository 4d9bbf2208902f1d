package broker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// AuditStream refuses a stream whose settings let the broker drop, rewrite or
// withhold events on its own: a replay of such a log would be another history. The
// error lists every unsafe setting and what to set instead. Limits on bytes and
// messages are safe with discard new: the broker then refuses the producer.
func AuditStream(c jetstream.StreamConfig) error {
	const anew = "create the stream anew and publish the events again" // for what cannot be changed
	var errs []error
	check := func(unsafe bool, setting, why, mend string) {
		if unsafe {
			errs = append(errs, fmt.Errorf("%s: %s; %s", setting, why, mend))
		}
	}
	check(c.Retention != jetstream.LimitsPolicy, "retention", "events vanish when consumers acknowledge them or none is there", "set it to limits")
	check(c.MaxAge > 0, "max_age", "old events vanish by time", "set it to 0")
	check(c.Discard != jetstream.DiscardNew, "discard", "old events vanish when a limit is reached", "set it to new")
	check(c.MaxMsgsPerSubject > 0, "max_msgs_per_subject", "old events vanish when a kind has many", "set it to -1")
	check(c.DiscardNewPerSubject, "discard_new_per_subject", "it goes with a limit per subject", "set it to false")
	check(c.AllowMsgTTL, "allow_msg_ttl", "a producer can make events vanish by time", anew+" with it off")
	check(c.SubjectDeleteMarkerTTL > 0, "subject_delete_marker_ttl", "the broker adds messages when events vanish", "set it to 0")
	check(c.AllowRollup, "allow_rollup_hdrs", "a producer can replace the whole log by one message", "set it to false")
	check(!c.DenyDelete, "deny_delete", "single events can be deleted, which leaves gaps", anew+" with it on")
	check(c.Mirror != nil, "mirror", "it follows another stream, in which sequences can change", "use that stream, or "+anew)
	check(missesTransforms(c), "sources", "messages of another stream keep its subjects, which are none of this log", "transform each subject to one of this log, such as gql.edge to second.edge")
	check(c.SubjectTransform != nil, "subject_transform", "the broker rewrites subjects, which give an event its kind", "remove it")
	check(c.AllowMsgCounter, "allow_msg_counter", "the broker adds messages up instead of storing them", anew+" with it off")
	check(c.AllowMsgSchedules, "allow_msg_schedules", "the broker publishes messages later, by its clock", anew+" with it off")
	check(c.FirstSeq > 1, "first_seq", "the log does not begin at 1, so a lost beginning cannot be noticed", anew+" without it")
	check(missesSubjects(c), "subjects", "events of some kind do not come here", "set them to PREFIX.>, where PREFIX is the stream's name in lower case")
	check(c.Storage != jetstream.FileStorage, "storage", "events are in memory only", anew+" with file storage")
	check(c.PersistMode == jetstream.AsyncPersistMode, "persist_mode", "events are acknowledged before they are written", anew+" with default")
	check(c.NoAck, "no_ack", "producers are not told whether an event was stored", "set it to false")
	check(c.Sealed, "sealed", "nothing can be added to it, ticks neither", anew)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("broker: stream %s is not safe as a log:\n%w", c.Name, errors.Join(errs...))
}

// missesTransforms reports whether messages of a source may keep subjects that are none of the log.
func missesTransforms(c jetstream.StreamConfig) bool {
	return slices.ContainsFunc(c.Sources, func(s *jetstream.StreamSource) bool {
		return len(s.SubjectTransforms) == 0 || slices.ContainsFunc(s.SubjectTransforms, func(x jetstream.SubjectTransformConfig) bool {
			_, ours := SubjectKind(Subjects(c.Name), x.Destination)
			return !ours
		})
	})
}

// missesSubjects reports whether some kind of event does not go to the stream.
func missesSubjects(c jetstream.StreamConfig) bool {
	if c.Mirror != nil {
		return false // reported as mirror
	}
	for k := range event.Kinds {
		subject, prefix := Subject(c.Name, event.Kind(k)), Subjects(c.Name)
		if !slices.ContainsFunc(c.Subjects, func(s string) bool {
			return s == subject || s == prefix+">" || s == prefix+"*" || s == ">"
		}) {
			return true
		}
	}
	return false
}
