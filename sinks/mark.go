package sinks

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Writer identity and liveness.
const (
	// markRenewEvery is how often Audit repeats the mark of a shard that is silent.
	markRenewEvery = 20 * time.Second

	// markQuietEvery is how often Audit moves the watermark of a shard that has nothing to
	// say, where readers wait for other shards.
	markQuietEvery = time.Second

	// markFreshMax is the age up to which a mark proves that its writer lives.
	markFreshMax = time.Minute
)

// Identity names a process that publishes.
type Identity struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"` // when it began
}

// Equal reports whether both name one process.
func (i Identity) Equal(o Identity) bool {
	return i.Host == o.Host && i.PID == o.PID && i.Since.Equal(o.Since)
}

// shardMark is the first message of every batch, on the subject of its shard. It is fence,
// heartbeat and watermark at once: it is stored only directly after the mark that its writer knew
// as the last one, and the last part of a position says that the shard is complete up to there.
type shardMark struct {
	Writer   Identity `json:"writer"`
	Position uint64   `json:"position"`
	Time     string   `json:"time,omitempty"` // log time, RFC 3339
	Part     int      `json:"part"`           // 1 to Parts
	Parts    int      `json:"parts"`
	Records  int      `json:"records"` // of this part, which follow the mark directly
	Config   string   `json:"config"`  // digest of the configuration
	Classes  []string `json:"classes,omitempty"`
	Log      string   `json:"log"`             // identity of the log in
	Cut      bool     `json:"cut,omitempty"`   // as Emission has it
	Notes    []string `json:"notes,omitempty"` // as Emission has them; with the first part of shard 0
	Closed   bool     `json:"closed,omitempty"`

	// Quiet marks move the watermark of a shard that has nothing to say, and are no emission:
	// readers of other shards wait for them. Their time is that of the newest mark that is one.
	Quiet bool `json:"quiet,omitempty"`
}

func (m *shardMark) place() place { return place{m.Position, m.Part} }

// nanoseconds returns the log time, 0 where the log has none.
func (m *shardMark) nanoseconds() int64 {
	at, err := time.Parse(time.RFC3339Nano, m.Time)
	if err != nil {
		return 0
	}
	return at.UnixNano()
}

// parseMark reads a mark; what is none is an error.
func parseMark(data []byte) (m shardMark, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("sinks: mark: %w", err)
	}
	if m.Part < 1 || m.Part > m.Parts || m.Records < 0 || m.Records > partRecordsMax {
		return m, errors.New("sinks: mark: part, parts or records are out of range")
	}
	return m, nil
}

// timeText is a log time as records write it; none is empty.
func timeText(t int64) string {
	if t == 0 {
		return ""
	}
	return time.Unix(0, t).UTC().Format(time.RFC3339Nano)
}
