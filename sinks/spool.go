package sinks

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Limits of a spool.
const (
	spoolSegments      = 8       // files that share its bytes; one is freed when all of it is delivered
	spoolPayloadMax    = 1 << 30 // of one emission
	spoolHeaderBytes   = 32
	spoolSuffix        = ".spool"
	spoolLogFile       = "log-id"
	spoolDeliveredFile = "delivered" // the position up to which, and a newline
)

// spoolFile is what a spool needs of a file; the tests have one on a full disk.
type spoolFile interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Truncate(int64) error
	Close() error
}

// spool is a queue of records in the files of a directory, each with a position
// that grows. A file, or segment, is named after the position before its first
// record. A record is
//
//	length u32, 0 u32, position u64, time u64 (Unix ns), xxhash64 of all the rest u64, payload
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
	last     uint64     // position of the newest record there ever was
	done     uint64     // position up to which records are delivered
	rows     int        // records after that
	fresh    bool       // nothing was ever in it
}

type segment struct {
	file spoolFile
	name string
	base uint64 // position before its first record
	last uint64 // of its last record; base when there is none
	size int64
}

// spoolRecord is a record as it is read.
type spoolRecord struct {
	position uint64
	at       time.Time
	payload  []byte
	bytes    int64 // on the disk
}

func openSpoolFile(name string) (spoolFile, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
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
	return s, nil
}

// begin makes the first segment of a spool that was never used.
func (s *spool) begin(from uint64) error {
	s.last, s.done, s.fresh = from, from, false
	g, err := s.openSegment(from)
	if err != nil {
		return err
	}
	s.segments = append(s.segments, g)
	return s.sync()
}

// take opens the next segment, or sets it aside if records before it are gone.
func (s *spool) take(base uint64) error {
	if base != s.last {
		name := s.fileName(base)
		return os.Rename(name, name+".damaged")
	}
	g, err := s.openSegment(base)
	if err != nil {
		return err
	}
	s.segments = append(s.segments, g)
	s.last = g.last
	return g.file.Truncate(g.size)
}

func (s *spool) fileName(base uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%020d%s", base, spoolSuffix))
}

// readDelivered returns the position up to which records are known as delivered.
func (s *spool) readDelivered() uint64 {
	data, _ := os.ReadFile(filepath.Join(s.dir, spoolDeliveredFile)) // without it more is delivered again
	text, whole := strings.CutSuffix(string(data), "\n")
	position, err := strconv.ParseUint(text, 10, 64)
	if err != nil || !whole {
		return 0
	}
	return position
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

func (s *spool) list() (bases []uint64, err error) {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), spoolSuffix)
		if base, err := strconv.ParseUint(name, 10, 64); is && err == nil {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, err
}

// openSegment opens or makes the segment after a position.
func (s *spool) openSegment(base uint64) (*segment, error) {
	g := &segment{name: s.fileName(base), base: base, last: base}
	var err error
	if g.file, err = s.open(g.name); err != nil {
		return nil, err
	}
	for {
		r, err := g.read(g.size)
		if errors.Is(err, errSpoolEnd) || err == nil && r.position <= g.last {
			return g, nil
		}
		if err != nil {
			return nil, errors.Join(err, g.file.Close())
		}
		g.last, g.size = r.position, g.size+r.bytes
		if r.position > s.done {
			s.rows++
		}
	}
}

// errSpoolEnd says that there is no whole record at an offset.
var errSpoolEnd = errors.New("sinks: no whole record")

func (g *segment) read(offset int64) (spoolRecord, error) {
	var header [spoolHeaderBytes]byte
	if _, err := g.file.ReadAt(header[:], offset); err != nil {
		return spoolRecord{}, cmp.Or(endOf(err), err)
	}
	length := binary.LittleEndian.Uint32(header[:])
	if length > spoolPayloadMax {
		return spoolRecord{}, errSpoolEnd
	}
	payload := make([]byte, length)
	if _, err := g.file.ReadAt(payload, offset+spoolHeaderBytes); err != nil && length > 0 {
		return spoolRecord{}, cmp.Or(endOf(err), err)
	}
	if spoolSum(header[:], payload) != binary.LittleEndian.Uint64(header[24:]) {
		return spoolRecord{}, errSpoolEnd
	}
	return spoolRecord{
		position: binary.LittleEndian.Uint64(header[8:]),
		at:       time.Unix(0, int64(binary.LittleEndian.Uint64(header[16:]))),
		payload:  payload, bytes: spoolHeaderBytes + int64(length),
	}, nil
}

func endOf(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errSpoolEnd
	}
	return nil
}

func spoolSum(header, payload []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	d.Write(header[:24])
	d.Write(payload)
	return d.Sum64()
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
func (s *spool) append(position uint64, at time.Time, payload []byte) error {
	if len(payload) > spoolPayloadMax {
		return fmt.Errorf("an emission of %d bytes, at most %d can be queued", len(payload), spoolPayloadMax)
	}
	if err := s.roll(); err != nil {
		return err
	}
	g := s.segments[len(s.segments)-1]
	frame := make([]byte, spoolHeaderBytes, spoolHeaderBytes+len(payload))
	binary.LittleEndian.PutUint32(frame, uint32(len(payload)))
	binary.LittleEndian.PutUint64(frame[8:], position)
	binary.LittleEndian.PutUint64(frame[16:], uint64(at.UnixNano()))
	binary.LittleEndian.PutUint64(frame[24:], spoolSum(frame, payload))
	if _, err := g.file.WriteAt(append(frame, payload...), g.size); err != nil {
		return err
	}
	g.last, g.size = position, g.size+int64(len(frame)+len(payload))
	s.last, s.rows = position, s.rows+1
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

// delivered notes that the sink has all up to a position for good, so many rows more
// than before, and frees the segments before it; with all set also the one being
// written, if all of it is. An error says that some could not be freed.
func (s *spool) delivered(position uint64, rows int, all bool) error {
	s.done, s.rows = max(s.done, position), s.rows-rows
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
	if os.WriteFile(name+".tmp", []byte(strconv.FormatUint(s.done, 10)+"\n"), 0o600) == nil {
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
