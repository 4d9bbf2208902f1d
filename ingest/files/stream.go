package files

import (
	"cmp"
	"io"
	"math"
	"slices"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// aheadRows is the number of rows of a file that are read ahead.
const aheadRows = 1024

// fileEntry is one row of a fileStream.
type fileEntry struct {
	key   event.Time // orders the log
	kind  event.Kind
	index int32 // in the batch's slice of its kind; refusals at -1, -2, ...
}

// fileStream is one file on its way into the log: the rows read ahead, or all.
type fileStream struct {
	rows      *fileRows
	keepOrder bool // rows are in the order of the log as they are
	ahead     event.Batch
	entries   []fileEntry
	next      int        // of entries
	last      event.Time // key of the last entry that was read
	started   bool
	loaded    bool // ahead holds all rows
	tally     Tally
}

func (s *fileStream) head() *fileEntry { return &s.entries[s.next] }

// close closes the file.
func (s *fileStream) close() error { return s.rows.file.Close() }

// fill reads ahead. It returns io.EOF when there is nothing more.
func (s *fileStream) fill() error {
	if s.loaded {
		return io.EOF
	}
	s.ahead.Reset()
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
	before := s.ahead.Mark()
	t, err := s.rows.next(&s.ahead)
	if err != nil {
		return err
	}
	e := entryOf(before, &s.ahead)
	if !s.started {
		s.last, s.started = math.MinInt64, true
	}
	switch {
	case e.index < 0:
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
func entryOf(m event.Mark, b *event.Batch) fileEntry {
	if len(b.Refused) > m.Refused {
		return fileEntry{kind: b.Refused[m.Refused].Kind, index: int32(-1 - m.Refused)}
	}
	for k, from := range m.Count {
		if b.Count(event.Kind(k)) > from {
			return fileEntry{kind: event.Kind(k), index: int32(from)}
		}
	}
	panic("files: a row that became nothing")
}

// unit describes the head to the cutter, with a position in the log.
func (s *fileStream) unit(at event.Position) ingest.Unit {
	u := ingest.Unit{Position: at, Events: 1}
	e, b := s.head(), &s.ahead
	if e.index < 0 {
		return u
	}
	_, u.Time = b.Stamp(e.kind, int(e.index))
	switch e.kind {
	case event.KindVertex:
		u.Alone = b.Vertices[e.index].Erase
	case event.KindControl:
		op := b.Controls[e.index].Op
		u.Flush, u.Checkpoint, u.Configure = op == event.Flush || op == event.Note, op == event.Checkpoint, op == event.Configure
	}
	return u
}

// moveTo appends entry i to dst, at a position. What it points to is copied, for the
// rows ahead are read into the same memory again.
func (s *fileStream) moveTo(dst *event.Batch, i int, at event.Position) {
	e, b := s.entries[i], &s.ahead
	if e.index < 0 {
		dst.Refused = append(dst.Refused, b.Refused[-1-e.index])
		return
	}
	wire.Copy(dst, b, e.kind, int(e.index))
	position, _, _ := dst.At(e.kind, dst.Count(e.kind)-1)
	*position = at
}
