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
	var errs []error
	for _, check := range streamChecks {
		if check.unsafe(c) {
			errs = append(errs, fmt.Errorf("%s: %s; %s", check.setting, check.why, check.mend))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("broker: stream %s is not safe as a log:\n%w", c.Name, errors.Join(errs...))
}

// streamCheck is one setting that a log must not have.
type streamCheck struct {
	setting, why, mend string
	unsafe             func(jetstream.StreamConfig) bool
}

// anew is the advice for what a broker cannot change in an existing stream.
const anew = "create the stream anew and publish the events again"

var streamChecks = slices.Concat(droppingChecks, rewritingChecks, lossyChecks)

// droppingChecks find settings by which stored events vanish.
var droppingChecks = []streamCheck{
	{
		"retention", "events vanish when consumers acknowledge them or none is there",
		"set it to limits",
		func(c jetstream.StreamConfig) bool { return c.Retention != jetstream.LimitsPolicy },
	},
	{
		"max_age", "old events vanish by time", "set it to 0",
		func(c jetstream.StreamConfig) bool { return c.MaxAge > 0 },
	},
	{
		"discard", "old events vanish when a limit is reached", "set it to new",
		func(c jetstream.StreamConfig) bool { return c.Discard != jetstream.DiscardNew },
	},
	{
		"max_msgs_per_subject", "old events vanish when a kind has many", "set it to -1",
		func(c jetstream.StreamConfig) bool { return c.MaxMsgsPerSubject > 0 },
	},
	{
		"discard_new_per_subject", "it goes with a limit per subject", "set it to false",
		func(c jetstream.StreamConfig) bool { return c.DiscardNewPerSubject },
	},
	{
		"allow_msg_ttl", "a producer can make events vanish by time", anew + " with it off",
		func(c jetstream.StreamConfig) bool { return c.AllowMsgTTL },
	},
	{
		"subject_delete_marker_ttl", "the broker adds messages when events vanish", "set it to 0",
		func(c jetstream.StreamConfig) bool { return c.SubjectDeleteMarkerTTL > 0 },
	},
	{
		"allow_rollup_hdrs", "a producer can replace the whole log by one message",
		"set it to false",
		func(c jetstream.StreamConfig) bool { return c.AllowRollup },
	},
	{
		"deny_delete", "single events can be deleted, which leaves gaps", anew + " with it on",
		func(c jetstream.StreamConfig) bool { return !c.DenyDelete },
	},
}

// rewritingChecks find settings by which the log is not what producers published.
var rewritingChecks = []streamCheck{
	{
		"mirror", "it follows another stream, in which sequences can change",
		"use that stream, or " + anew,
		func(c jetstream.StreamConfig) bool { return c.Mirror != nil },
	},
	{
		"sources", "messages of another stream keep its subjects, which are none of this log",
		"transform each subject to one of this log, such as gql.edge to second.edge",
		func(c jetstream.StreamConfig) bool {
			return slices.ContainsFunc(c.Sources, func(s *jetstream.StreamSource) bool {
				return len(s.SubjectTransforms) == 0 || slices.ContainsFunc(s.SubjectTransforms, func(x jetstream.SubjectTransformConfig) bool {
					_, ours := SubjectKind(c.Name, x.Destination)
					return !ours
				})
			})
		},
	},
	{
		"subject_transform", "the broker rewrites subjects, which give an event its kind",
		"remove it",
		func(c jetstream.StreamConfig) bool { return c.SubjectTransform != nil },
	},
	{
		"allow_msg_counter", "the broker adds messages up instead of storing them",
		anew + " with it off",
		func(c jetstream.StreamConfig) bool { return c.AllowMsgCounter },
	},
	{
		"allow_msg_schedules", "the broker publishes messages later, by its clock",
		anew + " with it off",
		func(c jetstream.StreamConfig) bool { return c.AllowMsgSchedules },
	},
	{
		"first_seq", "the log does not begin at 1, so a lost beginning cannot be noticed",
		anew + " without it",
		func(c jetstream.StreamConfig) bool { return c.FirstSeq > 1 },
	},
	{
		"subjects", "events of some kind do not come here", "set them to PREFIX.>, where PREFIX is the stream's name in lower case",
		missesSubjects,
	},
}

// lossyChecks find settings by which accepted events can be lost.
var lossyChecks = []streamCheck{
	{
		"storage", "events are in memory only", anew + " with file storage",
		func(c jetstream.StreamConfig) bool { return c.Storage != jetstream.FileStorage },
	},
	{
		"persist_mode", "events are acknowledged before they are written", anew + " with default",
		func(c jetstream.StreamConfig) bool { return c.PersistMode == jetstream.AsyncPersistMode },
	},
	{
		"no_ack", "producers are not told whether an event was stored", "set it to false",
		func(c jetstream.StreamConfig) bool { return c.NoAck },
	},
	{
		"sealed", "nothing can be added to it, ticks neither", anew,
		func(c jetstream.StreamConfig) bool { return c.Sealed },
	},
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
