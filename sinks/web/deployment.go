package web

import (
	"strings"
	"time"

	"gqlstream/internal/request"
)

// Deployment describes a run: the contents of its streams, its group and its configuration.
// Steps do not change it. Zero values are unknown.
type Deployment struct {
	// LastEvents is when the broker received the newest event of each kind that is still in the
	// log.
	LastEvents map[string]time.Time
	Streams    []Stream
	OutputLost uint64 // messages that the output log had lost at its end when this run began
	Lacks      []Lack
	Scrub      Scrub
	Group      *Group // nil: the run is alone
	Config     string // digest of the configuration
	Reloaded   time.Time
	ReloadOK   bool // the last reload, or the start, was taken over
	// Silent is set on the workers of a group that export no metrics of communities: another one
	// does.
	Silent bool
}

// Stream describes a stream of the broker.
type Stream struct {
	// Holds is "log", "quarantine", "estimates", "alerts", "history", "latest" or "group"
	Name, Holds     string
	Messages, Bytes uint64
	BytesMax        int64 // 0 or less: no limit
	Oldest          time.Time
}

// Lack says how many messages a log lacks between its first and its last one, or the copy of one of
// the servers that keep it.
type Lack struct {
	Stream, Server string // Server is empty for the stream as a whole
	Messages       uint64
}

// Scrub is the result of the last reading of all stored data; zero: it has not ended yet.
type Scrub struct {
	Ended  time.Time
	Faults int
}

// Group describes the group of a worker as that worker knows it.
type Group struct {
	Worker   string
	Workers  int // that live
	Shards   int
	Here     int // shards that this worker estimates
	Unserved int // shards that no worker says it estimates
}

// collectDeployment tells of the streams, the group and the configuration.
func (x *collection) collectDeployment(d *Deployment) {
	for kind, at := range d.LastEvents {
		x.time("last_event_timestamp_seconds",
			"When the broker took the newest event of the kind; absent when the log holds none.",
			at, "kind", kind)
	}
	for _, s := range d.Streams {
		of := []string{"stream", s.Name, "holds", s.Holds}
		x.gauge("stream_messages", "Messages in the stream.", float64(s.Messages), of...)
		x.gauge("stream_bytes", "Size of the stream at the broker, of one copy.", float64(s.Bytes),
			of...)
		if s.BytesMax > 0 {
			x.gauge("stream_bytes_max", "Size at which a log refuses events, and others drop "+
				"their oldest; absent without a limit.",
				float64(s.BytesMax), of...)
		}
		x.time("stream_oldest_timestamp_seconds",
			"When the oldest message of the stream was taken; absent when it is empty.", s.Oldest,
			of...)
	}
	for _, l := range d.Lacks {
		x.gauge("stream_lacking_messages",
			"Messages that a log lacks between its first and its last; with a server: that its "+
				"copy lacks.",
			float64(l.Messages), "stream", l.Stream, "server", l.Server)
	}
	x.gauge("output_lost_messages", "Messages that the output log had lost at its end when this "+
		"run began; the run publishes their records again.", float64(d.OutputLost))
	if !d.Scrub.Ended.IsZero() {
		x.gauge("scrub_faults", "Damaged or missing parts that the last daily scrub found.",
			float64(d.Scrub.Faults))
		x.time("scrub_end_timestamp_seconds", "When the last daily scrub ended.", d.Scrub.Ended)
	}
	if g := d.Group; g != nil {
		x.gauge("group_info", "Always 1.", 1, "worker", g.Worker)
		x.gauge("group_workers", "Workers of the group that live, as this one knows.",
			float64(g.Workers))
		x.gauge("group_shards", "Shards of the group.", float64(g.Shards))
		x.gauge("group_shards_here", "Shards that this worker estimates.", float64(g.Here))
		x.gauge("group_shards_unserved", "Shards that no worker estimates, as this one knows.",
			float64(g.Unserved))
	}
	if !d.Reloaded.IsZero() {
		x.gauge("config_last_reload_successful",
			"1 when the last reload, or the start, applied the configuration.", boolean(d.ReloadOK))
		x.time("config_last_reload_success_timestamp_seconds",
			"When a configuration was last applied.", d.Reloaded)
	}
}

// time sends a time in Unix seconds, unless it is unknown.
func (x *collection) time(name, help string, at time.Time, labels ...string) {
	if !at.IsZero() {
		x.gauge(name, help, float64(at.UnixMilli())/1000, labels...)
	}
}

// sinkLabels returns the labels of a sink. Each shard of a stream is a sink of its own.
func sinkLabels(s *request.State) []string {
	name, shard, _ := strings.Cut(s.Name, ", shard ")
	return []string{"sink", name, "shard", shard}
}
