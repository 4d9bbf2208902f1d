package ingest

import (
	"cmp"
	"io"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// aheadRows is how many rows of a file are read ahead.
const aheadRows = 1024

// rowReader reads a file as events.
type rowReader interface {
	// next appends the next row to b, as an event or a refusal, and returns the
	// event's time; io.EOF after the last.
	next(b *event.Batch) (event.Time, error)
	opened() *openedFile
	warning() string
}

// fileEntry is one row of a fileStream.
type fileEntry struct {
	key   event.Time // orders the log
	kind  event.Kind
	index int32 // in the batch's slice of its kind; refusals at -1, -2, ...
}

// fileStream is one file on its way into the log: the rows read ahead, or all.
type fileStream struct {
	rows       rowReader
	keepOrder  bool // rows are in the order of the log as they are
	ignoreTime bool
	discard    bool // what was read ahead is in memory of the batch: never reuse it
	ahead      event.Batch
	entries    []fileEntry
	next       int        // of entries
	last       event.Time // key of the last entry that was read
	started    bool
	loaded     bool // ahead holds all rows
}

func (s *fileStream) head() *fileEntry { return &s.entries[s.next] }

// close closes the file.
func (s *fileStream) close() error { return s.rows.opened().Close() }

// fill reads ahead. It returns io.EOF when there is nothing more.
func (s *fileStream) fill() error {
	if s.loaded {
		return io.EOF
	}
	if s.discard {
		s.ahead = event.Batch{}
	} else {
		s.ahead.Reset()
	}
	s.entries, s.next = s.entries[:0], 0
	for len(s.entries) < aheadRows {
		err := s.read()
		if err == io.EOF {
			s.loaded = true
			break
		}
		if err != nil {
			return err
		}
	}
	if len(s.entries) == 0 {
		return io.EOF
	}
	return nil
}

// loadSorted reads all rows and sorts them by time.
func (s *fileStream) loadSorted() error {
	for {
		if err := s.read(); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	s.loaded = true
	slices.SortStableFunc(s.entries, func(a, b fileEntry) int { return cmp.Compare(a.key, b.key) })
	return nil
}

// read reads one row ahead. A refused row stays with the one before it.
func (s *fileStream) read() error {
	before := markOf(&s.ahead)
	t, err := s.rows.next(&s.ahead)
	if err != nil {
		return err
	}
	e := entryOf(before, &s.ahead)
	if !s.started {
		s.last, s.started = math.MinInt64, true
	}
	switch {
	case s.ignoreTime, e.index < 0:
	case s.keepOrder:
		s.last = max(s.last, timeKey(t))
	default:
		s.last = timeKey(t)
	}
	e.key = s.last
	s.entries = append(s.entries, e)
	return nil
}

// entryOf finds what was added to b since the mark.
func entryOf(m mark, b *event.Batch) fileEntry {
	switch {
	case len(b.Refused) > m.refused:
		return fileEntry{kind: b.Refused[m.refused].Kind, index: int32(-1 - m.refused)}
	case len(b.Edges) > m.edges:
		return fileEntry{kind: event.KindEdge, index: int32(m.edges)}
	case len(b.Labels) > m.labels:
		return fileEntry{kind: event.KindLabel, index: int32(m.labels)}
	case len(b.Predictions) > m.predictions:
		return fileEntry{kind: event.KindPrediction, index: int32(m.predictions)}
	case len(b.Members) > m.members:
		return fileEntry{kind: event.KindMember, index: int32(m.members)}
	case len(b.Vertices) > m.vertices:
		return fileEntry{kind: event.KindVertex, index: int32(m.vertices)}
	}
	return fileEntry{kind: event.KindControl, index: int32(m.controls)}
}

// unit describes the head to the cutter, without its position.
func (s *fileStream) unit() unit {
	u := unit{Events: 1}
	e, b := s.head(), &s.ahead
	if e.index < 0 {
		return u
	}
	switch e.kind {
	case event.KindEdge:
		u.Time = b.Edges[e.index].Time
	case event.KindLabel:
		u.Time = b.Labels[e.index].Time
	case event.KindPrediction:
		u.Time = b.Predictions[e.index].Time
	case event.KindMember:
		u.Time = b.Members[e.index].Time
	case event.KindVertex:
		u.Time, u.Alone = b.Vertices[e.index].Time, b.Vertices[e.index].Erase
	case event.KindControl:
		c := &b.Controls[e.index]
		u.Time, u.Flush, u.Checkpoint = c.Time, c.Op == event.Flush, c.Op == event.Checkpoint
		u.Configure = c.Op == event.Configure
	}
	return u
}

// moveTo appends entry i to dst, at a position.
func (s *fileStream) moveTo(dst *event.Batch, i int, at event.Position) {
	e, b := s.entries[i], &s.ahead
	if e.index < 0 {
		dst.Refused = append(dst.Refused, b.Refused[-1-e.index])
		return
	}
	switch e.kind {
	case event.KindEdge:
		x := b.Edges[e.index]
		x.Position = at
		dst.Edges = append(dst.Edges, x)
	case event.KindLabel:
		x := b.Labels[e.index]
		x.Position = at
		dst.Labels = append(dst.Labels, x)
	case event.KindPrediction:
		x := b.Predictions[e.index]
		x.Position = at
		units := dst.Units(len(x.Units)) // ahead is reset before dst is
		copy(units, x.Units)
		x.Units = units
		dst.Predictions = append(dst.Predictions, x)
	case event.KindMember:
		x := b.Members[e.index]
		x.Position = at
		dst.Members = append(dst.Members, x)
	case event.KindVertex:
		x := b.Vertices[e.index]
		x.Position = at
		dst.Vertices = append(dst.Vertices, x)
	case event.KindControl:
		x := b.Controls[e.index]
		x.Position = at
		dst.Controls = append(dst.Controls, x)
	}
}

// progress returns the bytes that have gone into the log, and all.
func (s *fileStream) progress() (done, total int64) {
	f := s.rows.opened()
	if s.loaded {
		if len(s.entries) == 0 {
			return f.size, f.size
		}
		return int64(float64(f.size) * float64(s.next) / float64(len(s.entries))), f.size
	}
	if f.size == 0 {
		return 0, 0
	}
	return min(f.read, f.size), f.size
}
