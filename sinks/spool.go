package sinks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of a spool.
const (
	spoolSegments      = 8       // files that share its bytes; one is freed when all of it is delivered
	spoolPayloadMax    = 1 << 30 // of one emission
	spoolHeaderBytes   = 32
	spoolSuffix        = ".spool"
	spoolLogFile       = "log-id"
	spoolDeliveredFile = "delivered" // the place up to which, and a newline
	spoolDamagedSuffix = ".damaged"
	spoolDamagedMax    = 3 // segments that are kept for a look, at most; the newest
)

// spool is a queue of records in the files of a directory, each with a position
// and a place that grows. A file, or segment, is named after the place before its
// first record. A record is
//
//	length u32, marks u32, position u64, time u64 (Unix ns), xxhash64 of all the rest u64, payload
//
// and becomes part of the spool when all of it is there: what a crash has cut short
// is overwritten. Records are written at an offset of the spool's own, so that a
// write that failed half-way leaves nothing either.
//
// It has one owner, but for read, which another goroutine may call with a cursor
// that is not beyond the end.
type spool struct {
	dir      string
	bytesMax int64
	open     func(name string) (spoolFile, error)
	segments []*segment // oldest first; the last one is written to
	last     spoolPlace // of the newest record there ever was
	done     spoolPlace // up to which records are delivered
	rows     int        // records after that
	fresh    bool       // nothing was ever in it
	damaged  []string   // segments that were set aside when it was opened
}

// openSpool opens the spool of a log in a directory, which it makes if need be,
// and drops what follows the first damaged record.
func openSpool(dir, log string, bytesMax int64) (*spool, error) {
	s := &spool{dir: dir, bytesMax: bytesMax, open: openSpoolFile}
	if err := s.claim(log); err != nil {
		return nil, err
	}
	bases, err := s.list()
	if err != nil {
		return nil, err
	}
	s.fresh = len(bases) == 0
	s.done = s.readDelivered()
	if !s.fresh { // a segment goes when all before the next one is delivered
		s.done, s.last = max(s.done, bases[0]), bases[0]
	}
	for _, base := range bases {
		if err := s.take(base); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	s.last = max(s.last, s.done)
	if err := s.dropDamaged(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// begin makes the first segment of a spool that was never used.
func (s *spool) begin(from uint64) error {
	s.last, s.done, s.fresh = placeAt(from), placeAt(from), false
	g, err := s.openSegment(s.last)
	if err != nil {
		return err
	}
	s.segments = append(s.segments, g)
	return s.sync()
}

// take opens the next segment, or sets it aside if records before it are gone.
func (s *spool) take(base spoolPlace) error {
	if base != s.last {
		name := s.fileName(base)
		s.damaged = append(s.damaged, name+spoolDamagedSuffix)
		return os.Rename(name, name+spoolDamagedSuffix)
	}
	g, err := s.openSegment(base)
	if err != nil {
		return err
	}
	s.segments = append(s.segments, g)
	s.last = g.last
	return g.file.Truncate(g.size)
}

// dropDamaged removes what was set aside, but for the newest: nothing reads it.
func (s *spool) dropDamaged() error {
	entries, err := os.ReadDir(s.dir) // sorted, as the places are
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), spoolSuffix+spoolDamagedSuffix) {
			names = append(names, filepath.Join(s.dir, e.Name()))
		}
	}
	for _, name := range names[:max(0, len(names)-spoolDamagedMax)] {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

func (s *spool) fileName(base spoolPlace) string {
	return filepath.Join(s.dir, base.String()+spoolSuffix)
}

// readDelivered returns the place up to which records are known as delivered.
func (s *spool) readDelivered() spoolPlace {
	data, _ := os.ReadFile(filepath.Join(s.dir, spoolDeliveredFile)) // without it more is delivered again
	text, whole := strings.CutSuffix(string(data), "\n")
	place, err := parsePlace(text)
	if err != nil || !whole {
		return 0
	}
	return place
}

// claim writes the identity of the log into a new directory and compares it in an
// old one.
func (s *spool) claim(log string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(s.dir, spoolLogFile)
	id, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist) || err == nil && len(id) == 0:
		return os.WriteFile(name, []byte(log), 0o600)
	case err == nil && string(id) != log:
		return fmt.Errorf("%s holds undelivered estimates of another log; move it away", s.dir)
	}
	return err
}

func (s *spool) list() (bases []spoolPlace, err error) {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), spoolSuffix)
		if base, err := parsePlace(name); is && err == nil {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, err
}

// size returns the bytes of all segments.
func (s *spool) size() (total int64) {
	for _, g := range s.segments {
		total += g.size
	}
	return total
}

// fits reports whether a payload has room. One always fits into an empty spool.
func (s *spool) fits(payload []byte) bool {
	size := s.size()
	return size == 0 || size+spoolHeaderBytes+int64(len(payload)) <= s.bytesMax
}

// append adds a record of a position after all others. After an error it is not
// there, and may be tried again.
func (s *spool) append(r spoolRecord) error {
	if len(r.payload) > spoolPayloadMax {
		return fmt.Errorf("an emission of %d bytes, at most %d can be queued", len(r.payload), spoolPayloadMax)
	}
	if err := s.roll(); err != nil {
		return err
	}
	g := s.segments[len(s.segments)-1]
	frame := make([]byte, spoolHeaderBytes, spoolHeaderBytes+len(r.payload))
	binary.LittleEndian.PutUint32(frame, uint32(len(r.payload)))
	binary.LittleEndian.PutUint32(frame[4:], r.marks)
	binary.LittleEndian.PutUint64(frame[8:], r.position)
	binary.LittleEndian.PutUint64(frame[16:], uint64(r.at.UnixNano()))
	binary.LittleEndian.PutUint64(frame[24:], spoolSum(frame, r.payload))
	if _, err := g.file.WriteAt(append(frame, r.payload...), g.size); err != nil {
		return err
	}
	g.last, g.size = r.place(), g.size+int64(len(frame)+len(r.payload))
	s.last, s.rows = g.last, s.rows+1
	return nil
}

// roll begins a new segment when the last one has its share.
func (s *spool) roll() error {
	if n := len(s.segments); n > 0 && s.segments[n-1].size < s.bytesMax/spoolSegments {
		return nil
	}
	if n := len(s.segments); n > 0 { // of which Sync knows nothing any more
		if err := s.segments[n-1].file.Sync(); err != nil {
			return err
		}
	}
	g, err := s.openSegment(s.last)
	if err != nil {
		return err
	}
	s.segments = append(s.segments, g)
	return nil
}

// sync puts every record on the disk, also the names of the segments.
func (s *spool) sync() error {
	if len(s.segments) == 0 {
		return nil
	}
	g := s.segments[len(s.segments)-1]
	return errors.Join(g.file.Truncate(g.size), g.file.Sync(), syncDir(s.dir))
}

// delivered notes that the sink has all up to a place for good, so many rows more
// than before, and frees the segments before it; with all set also the one being
// written, if all of it is. An error says that some could not be freed.
func (s *spool) delivered(place spoolPlace, rows int, all bool) error {
	s.done, s.rows = max(s.done, place), s.rows-rows
	if n := len(s.segments); all && s.last <= s.done && n > 0 && s.segments[n-1].size > 0 {
		g, err := s.openSegment(s.last)
		if err != nil {
			return err
		}
		s.segments = append(s.segments, g)
	}
	for len(s.segments) > 1 && s.segments[0].last <= s.done {
		g := s.segments[0]
		if err := os.Remove(g.name); err != nil {
			return err // it stays open, and is tried again
		}
		s.segments = s.segments[1:]
		if err := g.file.Close(); err != nil {
			return err
		}
	}
	name := filepath.Join(s.dir, spoolDeliveredFile)
	if os.WriteFile(name+".tmp", []byte(s.done.String()+"\n"), 0o600) == nil {
		_ = os.Rename(name+".tmp", name) // without it some more is delivered again after a restart
	}
	return nil
}

// cursor is a place in a spool.
type cursor struct {
	segment *segment // nil: before the oldest
	offset  int64
}

// next reads the record at a cursor and moves it on; ok is false at the end. The
// caller must not let the spool change meanwhile, but for append.
func (s *spool) next(c *cursor) (r spoolRecord, ok bool, err error) {
	for {
		if c.segment == nil {
			if len(s.segments) == 0 {
				return r, false, nil
			}
			c.segment, c.offset = s.segments[0], 0
		}
		if c.offset < c.segment.size {
			if r, err = c.segment.read(c.offset); err != nil {
				return r, false, fmt.Errorf("%s at byte %d: %w", c.segment.name, c.offset, err)
			}
			c.offset += r.bytes
			return r, true, nil
		}
		i := slices.Index(s.segments, c.segment)
		if i == len(s.segments)-1 {
			return r, false, nil
		}
		c.segment, c.offset = s.segments[i+1], 0
	}
}

// close leaves everything as it is.
func (s *spool) close() error {
	var errs []error
	for _, g := range s.segments {
		errs = append(errs, g.file.Close())
	}
	s.segments = nil
	return errors.Join(errs...)
}
