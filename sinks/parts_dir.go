package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	partsPositionName = "_position.json"

	// partFirstEvery is Every until there is a part: a new user wants something to read.
	partFirstEvery = 10 * time.Second

	// partBytesMax ends a part before its time, because the stream must still have the rows
	// that are in no part yet.
	partBytesMax = 128 << 20

	// partsQuietMax is after how many messages without a record the position is written
	// although there is no part.
	partsQuietMax = 1000
)

// PartsDirConfig configures the directory that parts are written to.
type PartsDirConfig struct {
	Dir         string
	Every       time.Duration // of log time; 0: PartEveryDefault
	Log         string        // identity of the log; a directory of another log is refused
	StreamBytes int64         // that the stream of estimates may take; 0: EstimatesBytesDefault

	rowsMax int // tests; 0: PartRowsMax
	disk    disk
}

// partsDir is a follower that writes estimates as a series of Parquet files,
// each of a range of positions: estimates-FIRST-LAST.parquet holds all records with a
// position from FIRST to LAST, and FIRST is one more than the LAST before it. A part is
// there whole or not at all, is never changed, and ends where the log says, so that any
// two runs over one log make the same files, byte by byte:
//
//   - when the log's time crosses a multiple of Every, the first one of ten seconds,
//   - after the emission that brings it to PartRowsMax rows, to 128 MiB of JSON, or to a
//     quarter of what the stream takes,
//   - where the log asks for a checkpoint.
//
// Records that are in no part yet stand in the stream, and are read again after a restart.
type partsDir struct {
	config  PartsDirConfig
	state   fileStore
	table   *partTable // rows of the next part
	bytes   int64      // of JSON, of the rows
	ends    int64      // log time of the end of the next part; 0: another part has just ended
	begins  int64      // log time before which no record is in that part
	after   uint64     // the next part begins after this position
	until   uint64     // position of the newest row
	taken   Cursor
	durable Cursor
}

// OpenPartsDir continues the directory, which it makes if need be, after its last part.
// One with parts of another log matches ErrNotOurs.
func OpenPartsDir(c PartsDirConfig) (Follower, Cursor, error) {
	c.Every, c.rowsMax = cmp.Or(c.Every, PartEveryDefault), cmp.Or(c.rowsMax, PartRowsMax)
	c.StreamBytes = cmp.Or(c.StreamBytes, EstimatesBytesDefault)
	s := &partsDir{config: c, state: fileStore{filepath.Join(c.Dir, partsPositionName), c.disk}}
	if err := s.open(); err != nil {
		return nil, Cursor{}, fmt.Errorf("parts in %s: %w", c.Dir, err)
	}
	s.table = newPartTable()
	return s, s.durable, nil
}

// PartsPositionFile returns the name of the file that says which log the parts in a directory are
// of.
func PartsPositionFile(dir string) string { return filepath.Join(dir, partsPositionName) }

// HasParts reports whether a directory has parts.
func HasParts(dir string) bool {
	entries, _ := os.ReadDir(dir) // the output reports that it cannot be read
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		_, _, isPart := parsePart(e.Name())
		return isPart
	})
}

func (s *partsDir) open() error {
	if err := os.MkdirAll(s.config.Dir, 0o755); err != nil {
		return err
	}
	last, err := sweepParts(s.config.Dir)
	if err != nil {
		return err
	}
	p, err := readState(context.Background(), s.state, s.config.Log)
	switch {
	case errors.Is(err, os.ErrNotExist) && last > 0:
		return fmt.Errorf("%s is missing, which names the log of the parts: %w", s.state,
			ErrNotOurs)
	case errors.Is(err, os.ErrNotExist):
		return writeState(context.Background(), s.state, progress{Log: s.config.Log})
	case err != nil:
		return err
	}
	s.durable, s.taken = p.Cursor, p.Cursor
	s.after = max(last, p.From)
	s.until = s.after
	return nil
}

// Take implements Follower.
func (s *partsDir) Take(ctx context.Context, e *Stored) error {
	if e.Position > s.after { // else a part has it; the run ended before it wrote the position file
		if err := s.add(ctx, e); err != nil {
			return err
		}
	}
	s.taken = e.Cursor
	if s.table.rows < s.config.rowsMax && s.bytes < min(partBytesMax, s.config.StreamBytes/4) &&
		!e.Cut {
		return nil
	}
	return s.cut(ctx)
}

// add takes in the records of an emission, which may begin another part.
func (s *partsDir) add(ctx context.Context, e *Stored) error {
	if e.Time >= s.ends || e.Time < s.begins || e.Missed {
		if err := s.cut(ctx); err != nil {
			return err
		}
		if e.Missed { // must show: no part holds the positions before it
			s.after = e.Position - 1
		}
		every := int64(s.config.Every)
		if s.after == 0 {
			every = min(every, int64(partFirstEvery))
		}
		s.ends = (e.Time/every + 1) * every
		s.begins = s.ends - every
	}
	estimates, err := e.Estimates()
	if err != nil {
		return err
	}
	for i := range estimates {
		s.table.append(&estimates[i])
		s.bytes += int64(len(e.Records[i]))
	}
	if len(estimates) > 0 {
		s.until = e.Position
	}
	return nil
}

// cut makes a part of the rows, if there are any.
func (s *partsDir) cut(ctx context.Context) error {
	if s.table.rows == 0 {
		return nil
	}
	name := filepath.Join(s.config.Dir, partName(s.after+1, s.until))
	if err := s.config.disk.replace(name, s.table.write); err != nil {
		return err
	}
	s.after, s.bytes, s.ends = s.until, 0, 0
	return s.writePosition(ctx)
}

func (s *partsDir) writePosition(ctx context.Context) error {
	if err := writeState(ctx, s.state,
		progress{Log: s.config.Log, Cursor: s.taken, From: s.after}); err != nil {
		return err
	}
	s.durable = s.taken
	return nil
}

// Sync implements Follower. Rows that are in no part yet are not durable.
func (s *partsDir) Sync(ctx context.Context, _ Cursor) (Cursor, error) {
	if s.table.rows == 0 && s.taken.Sequence >= s.durable.Sequence+partsQuietMax {
		return s.taken, s.writePosition(ctx)
	}
	return s.durable, nil
}

// Close implements Follower.
func (s *partsDir) Close() error {
	s.table.builder.Release()
	return nil
}

// partFormat is the form of a part, which is also its extension.
const partFormat = "parquet"

const (
	// PartEveryDefault is the log time of a part where the configuration names none.
	PartEveryDefault = 10 * time.Minute

	// PartRowsMax ends a part before its time, and so bounds the memory that the rows
	// of an unfinished one take: about 50 MiB with two classes.
	PartRowsMax = 1 << 17
)

// sweepParts removes unfinished files and returns the last position in a part.
func sweepParts(dir string) (last uint64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		name, unfinished := strings.CutSuffix(entry.Name(), temporarySuffix)
		_, until, isPart := parsePart(name)
		switch {
		case unfinished && (isPart || name == partsPositionName):
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return 0, err
			}
		case isPart && !unfinished:
			last = max(last, until)
		}
	}
	return last, nil
}

const (
	partPrefix      = "estimates-"
	temporarySuffix = ".tmp"
)

// partName orders as positions do, up to twelve digits.
func partName(first, last uint64) string {
	return fmt.Sprintf("%s%012d-%012d.%s", partPrefix, first, last, partFormat)
}

// parsePart is the inverse of partName.
func parsePart(name string) (first, last uint64, ok bool) {
	if _, err := fmt.Sscanf(name, partPrefix+"%d-%d."+partFormat, &first, &last); err != nil {
		return 0, 0, false
	}
	return first, last, name == partName(first, last)
}
