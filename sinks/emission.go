package sinks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

// Emission holds everything that a worker publishes at one position of the input log.
type Emission struct {
	Position  uint64
	Digest    string           // of the input log up to the position; see ingest.Digest
	Time      int64            // log time, nanoseconds since 1970; 0: the log has none
	Estimates []quant.Estimate // sorted by community and then in the order of the methods
	Cut       bool             // the log asks followers to write here the rows that they hold back
	Notes     []string         // notes for people at this position

	Active int64 // as Heartbeats has it; Admit fills it in
}

// The log time between two marks of a shard without records grows with the time since its last
// records, so that an idle pipeline writes little.
const (
	heartbeatEvery = int64(time.Second) // at least
	// below markFreshMax, so that the writer is seen to live
	heartbeatMost  = int64(45 * time.Second)
	heartbeatShare = 8 // at most 1/heartbeatShare of the time since the last records
)

// Heartbeats decides which emissions without records are in the output log. A replay without a
// broker uses it too, so that alerts are evaluated at the same positions.
type Heartbeats struct {
	last   int64 // log time of the newest mark
	active int64 // log time of the newest mark with records, or of the first of the log
}

// Publishes reports whether an emission is published: if it has records or notes, if it cuts, or if
// the newest mark is a second or more old (longer after a long silence). Call it for every
// emission, in order.
func (h *Heartbeats) Publishes(e *Emission) bool {
	h.last, h.active = min(h.last, e.Time), min(h.active, e.Time) // a clock event went back
	says := len(e.Estimates) > 0 || len(e.Notes) > 0 || e.Cut
	if h.active == 0 || says {
		h.active = e.Time
	}
	pause := min(max((e.Time-h.active)/heartbeatShare, heartbeatEvery), heartbeatMost)
	if !says && e.Time < h.last+pause {
		return false
	}
	h.last = e.Time
	return true
}

// Cursor is a place in the output log: every emission up to the position has been read, and of the
// stream of alerts every one up to the place. Sequence is where reading continues. Stamp is the
// broker's time of that message and shows whether the stream has lost its end or was replaced.
// Digest does the same for the input log.
type Cursor struct {
	Place
	Sequence uint64 `json:"sequence"`
	Stamp    int64  `json:"stamp"`
	Digest   string `json:"digest,omitempty"` // of the input log up to the position; "": not known
}

// Stored is an emission as a reader found it in the output log.
type Stored struct {
	Position uint64
	Time     int64    // log time, nanoseconds since 1970; 0: the log has none
	Cursor   Cursor   // of a reader that has taken this emission
	Records  [][]byte // JSON of the estimates, in their order
	Cut      bool     // as Emission has it
	Notes    []string // the same
	Missed   bool     // earlier messages were discarded unread
	Behind   uint64   // messages that were in the stream after it

	decoded []quant.Estimate
}

// Note is a text for people at a place of the log, such as "debate tonight".
type Note struct {
	Text     string `json:"note"`
	Position uint64 `json:"position"`
	Time     string `json:"time,omitempty"` // log time, RFC 3339
}

// NotesOf returns the notes of an emission as they are published.
func NotesOf(position uint64, at int64, texts []string) (list []Note) {
	for _, text := range texts {
		list = append(list, Note{text, position, alerts.TimeText(at)})
	}
	return list
}

// joined returns the parts of an emission as one, in the order of communities, as a run without
// shards publishes it.
func joined(parts []*part) *Stored {
	e := &Stored{Position: parts[0].Position, Time: parts[0].nanoseconds()}
	for _, p := range parts {
		e.Records, e.Notes, e.Cut = append(e.Records, p.records...), append(
			e.Notes,
			p.Notes...), e.Cut ||
			p.Cut
	}
	if parts[0].shard == parts[len(parts)-1].shard {
		return e
	}
	estimates, err := e.Estimates()
	if err != nil {
		return e // the slowest follower is reported
	}
	type row struct {
		record   []byte
		estimate quant.Estimate
	}
	rows := make([]row, len(estimates))
	for i, one := range estimates {
		rows[i] = row{e.Records[i], one}
	}
	slices.SortStableFunc(rows,
		func(a, b row) int { return cmp.Compare(a.estimate.Community, b.estimate.Community) })
	for i, one := range rows {
		e.Records[i], estimates[i] = one.record, one.estimate
	}
	return e
}

// Lines returns the records and the notes as lines of JSON.
func (e *Stored) Lines() ([][]byte, error) {
	lines := e.Records
	for _, n := range NotesOf(e.Position, e.Time, e.Notes) {
		data, err := alerts.PlainJSON(n)
		if err != nil {
			return nil, err
		}
		lines = append(lines[:len(lines):len(lines)], data)
	}
	return lines, nil
}

// Estimates decodes the records; the first call does the work.
func (e *Stored) Estimates() ([]quant.Estimate, error) {
	if e.decoded != nil || len(e.Records) == 0 {
		return e.decoded, nil
	}
	decoded := make([]quant.Estimate, len(e.Records))
	for i, data := range e.Records {
		if err := json.Unmarshal(data, &decoded[i]); err != nil {
			return nil, fmt.Errorf("record %d at position %d: %w", i, e.Position, err)
		}
	}
	e.decoded = decoded
	return decoded, nil
}

// Ordinal returns how many records of an emission before the i-th are of the same community and
// method.
func Ordinal(list []quant.Estimate, i int) (n int) {
	for j := i - 1; j >= 0 && list[j].Community == list[i].Community &&
		list[j].Position == list[i].Position; j-- {
		if list[j].Method == list[i].Method {
			n++
		}
	}
	return n
}
