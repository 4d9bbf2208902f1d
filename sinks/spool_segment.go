package sinks

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// spoolFile is what a spool needs of a file; the tests have one on a full disk.
type spoolFile interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Truncate(int64) error
	Close() error
}

type segment struct {
	file spoolFile
	name string
	base spoolPlace // of the record before its first
	last spoolPlace // of its last record; base when there is none
	size int64
}

// spoolRecord is a record as it is read.
type spoolRecord struct {
	position uint64
	at       time.Time
	marks    uint32
	payload  []byte
	bytes    int64 // on the disk
}

// markBefore says that a record comes before that of the same position, if there is
// one. The other marks are the queue's.
const markBefore = 1

// spoolPlace is where a record stands: at twice its position, or directly before that
// with markBefore. Zero is before all.
type spoolPlace uint64

func placeAt(position uint64) spoolPlace { return spoolPlace(2 * position) }

func (r *spoolRecord) place() spoolPlace {
	if r.marks&markBefore != 0 {
		return placeAt(r.position) - 1
	}
	return placeAt(r.position)
}

// through returns the position up to which there is nothing after the place.
func (p spoolPlace) through() uint64 { return uint64(p / 2) }

// String returns the place as it stands in the names of files.
func (p spoolPlace) String() string {
	if p%2 == 1 {
		return fmt.Sprintf("%020d-", uint64(p+1)/2)
	}
	return fmt.Sprintf("%020d", uint64(p)/2)
}

// parsePlace is the inverse of String.
func parsePlace(text string) (spoolPlace, error) {
	position, before := strings.CutSuffix(text, "-")
	n, err := strconv.ParseUint(position, 10, 63)
	r := spoolRecord{position: n}
	if before {
		r.marks = markBefore
	}
	return r.place(), err
}

func openSpoolFile(name string) (spoolFile, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
}

// openSegment opens or makes the segment after a position.
func (s *spool) openSegment(base spoolPlace) (*segment, error) {
	g := &segment{name: s.fileName(base), base: base, last: base}
	var err error
	if g.file, err = s.open(g.name); err != nil {
		return nil, err
	}
	for {
		r, err := g.read(g.size)
		if errors.Is(err, errSpoolEnd) || err == nil && r.place() <= g.last {
			return g, nil
		}
		if err != nil {
			return nil, errors.Join(err, g.file.Close())
		}
		g.last, g.size = r.place(), g.size+r.bytes
		if g.last > s.done {
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
		marks:    binary.LittleEndian.Uint32(header[4:]),
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
