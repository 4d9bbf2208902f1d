package files

import (
	"io"
	"math"

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
	rows     *fileRows
	ahead    event.Batch
	entries  []fileEntry
	next     int        // of entries
	last     event.Time // key of the last entry that was read
	unsorted bool       // a row was before the one before it
	tally    Tally
}

func (s *fileStream) head() *fileEntry { return &s.entries[s.next] }

// close closes the file.
func (s *fileStream) close() error { return s.rows.file.Close() }

// fill reads at most n rows ahead. It returns io.EOF when there is nothing more.
func (s *fileStream) fill(n int) error {
	s.ahead.Reset()
	s.entries, s.next = s.entries[:0], 0
	for len(s.entries) < n {
		err := s.read()
		if err == io.EOF && len(s.entries) > 0 {
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads one row ahead. A refused row stays with the one before it, and the lines of a log stay
// in their order.
func (s *fileStream) read() error {
	refused := len(s.ahead.Refused)
	kind, t, err := s.rows.next(&s.ahead)
	if err != nil {
		return err
	}
	e := fileEntry{key: s.last, kind: kind, index: int32(s.ahead.Count(kind) - 1)}
	if len(s.ahead.Refused) > refused {
		e.index = int32(-1 - refused)
	} else if key := timeKey(t); key > e.key || !s.rows.input.Log {
		s.unsorted = s.unsorted || key < e.key
		e.key = key
	}
	s.last = e.key
	s.entries = append(s.entries, e)
	return nil
}

// timeKey orders times: none is before all.
func timeKey(t event.Time) event.Time {
	if t == 0 {
		return math.MinInt64
	}
	return t
}

// copyHead appends the head to dst, at a position. What it points to is copied, for the
// rows ahead are read into the same memory again.
func (s *fileStream) copyHead(dst *event.Batch, at event.Position) {
	e := s.head()
	if e.index < 0 {
		dst.Refused = append(dst.Refused, s.ahead.Refused[-1-e.index])
		return
	}
	wire.Copy(dst, &s.ahead, e.kind, int(e.index))
	position, _, _ := dst.At(e.kind, dst.Count(e.kind)-1)
	*position = at
}
