package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gqlstream/quant"
)

// PartFormats are the forms of a part, which are also its extensions.
var PartFormats = []string{"parquet", "arrow"}

const (
	// PartEveryDefault is the log time of a part where the configuration names none.
	PartEveryDefault = 10 * time.Minute

	// PartRowsMax ends a part before its time, and so bounds the memory that the rows
	// of an unfinished one take: about 50 MiB with two classes.
	PartRowsMax = 1 << 17
)

// PartsConfig says where parts go and where the log goes on.
type PartsConfig struct {
	Dir    string
	Format string        // one of PartFormats
	Every  time.Duration // of log time; 0: PartEveryDefault
	Log    string        // identity of the log; a directory of another log is refused
	From   uint64        // the log is read again from after this position

	rowsMax int                // tests; 0: PartRowsMax
	fault   func(string) error // tests: called before every step that a crash can precede
	flush   func(*os.File) error
	disk    func(io.Writer) io.Writer // tests: what writes to a file of it
}

// Parts writes estimates as a series of Parquet or Arrow files, each of a range of
// positions: estimates-FIRST-LAST.parquet holds all records with a position from
// FIRST to LAST, and FIRST is one more than the LAST before it. A part is there
// whole or not at all, is never changed, and ends where the log says, so that any
// two runs over one log make the same files, byte by byte:
//
//   - when the log's time crosses a multiple of Every,
//   - after the emission that brings it to PartRowsMax rows,
//   - where the log asks for a checkpoint (Cut).
//
// What is not in a part yet stands in the file _tail.ndjson beside them. Sync puts
// it on the disk: then the tail and what comes from there on hold every record, and
// none twice. After an error Close it and open it anew, where the last Sync was: a
// disk that was full has lost nothing. Parts has one owner.
type Parts struct {
	config PartsConfig
	table  *partTable // rows of the next part
	tail   *tail
	after  uint64 // the next part begins after this position
	until  uint64 // records up to here are in the parts or in the tail
	synced uint64 // who goes on from here may count on the parts and the tail
	window int64  // of log time, of the rows
	broken error  // no part can be made any more, only opening anew helps
}

// OpenParts continues the directory, which it makes if need be.
func OpenParts(c PartsConfig) (*Parts, error) {
	if !slices.Contains(PartFormats, c.Format) {
		return nil, fmt.Errorf("sinks: parts: there is no format %q; there are %v", c.Format, PartFormats)
	}
	if c.Every == 0 {
		c.Every = PartEveryDefault
	}
	if c.rowsMax == 0 {
		c.rowsMax = PartRowsMax
	}
	if c.fault == nil {
		c.fault = func(string) error { return nil }
	}
	if c.disk == nil {
		c.disk = func(w io.Writer) io.Writer { return w }
	}
	if c.flush == nil {
		c.flush = (*os.File).Sync
	}
	s := &Parts{config: c, table: newPartTable()}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("sinks: parts in %s: %w", c.Dir, err), s.release())
	}
	return s, nil
}

func (s *Parts) open() error {
	if err := os.MkdirAll(s.config.Dir, 0o755); err != nil {
		return err
	}
	last, err := sweepParts(s.config.Dir, s.config.Format)
	if err != nil {
		return err
	}
	old, err := readTail(s.config.Dir, s.config.Log, s.config.From)
	if errors.Is(err, os.ErrNotExist) {
		if last > 0 {
			return fmt.Errorf("there are parts but no %s, which says of which log they are; "+
				"move them away or choose another directory", tailName)
		}
		old, err = tailContent{after: s.config.From, synced: s.config.From}, nil
	}
	if err != nil {
		return err
	}
	return s.resume(old, last)
}

// resume takes over what a tail holds beyond the last part.
func (s *Parts) resume(old tailContent, last uint64) error {
	s.after = max(old.after, last)
	s.until = s.after
	s.synced = min(old.synced, s.config.From) // what follows may be taken off and come again
	var kept []quant.Estimate
	for _, e := range old.records {
		if e.Position > s.after {
			kept = append(kept, e)
			s.until = e.Position
		}
	}
	var err error
	if s.tail, err = s.newTail(kept); err != nil {
		return err
	}
	for i := range kept {
		s.window = s.windowOf(&kept[i])
		s.table.append(&kept[i])
	}
	if missed := s.config.From; missed > max(old.synced, s.until) {
		return s.skip(missed) // in between this directory was not written to
	}
	return nil
}

// Skip notes that the records after the last one and up to a position went past. That
// must show: the part ends, and the next begins where the log goes on.
func (s *Parts) Skip(position uint64) error {
	if position <= s.until {
		return nil
	}
	if err := s.skip(position); err != nil {
		return fmt.Errorf("sinks: parts in %s: %w", s.config.Dir, err)
	}
	return nil
}

func (s *Parts) skip(position uint64) error {
	if err := s.cut(); err != nil {
		return err
	}
	s.after, s.until = position, position
	s.broken = s.renewTail()
	return s.broken
}

// sweepParts removes unfinished files and returns the last position in a part.
func sweepParts(dir, format string) (last uint64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		name, unfinished := strings.CutSuffix(entry.Name(), temporarySuffix)
		_, until, isPart := parsePart(name, format)
		switch {
		case unfinished && (isPart || name == tailName):
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
func partName(first, last uint64, format string) string {
	return fmt.Sprintf("%s%012d-%012d.%s", partPrefix, first, last, format)
}

// parsePart is the inverse of partName.
func parsePart(name, format string) (first, last uint64, ok bool) {
	if _, err := fmt.Sscanf(name, partPrefix+"%d-%d."+format, &first, &last); err != nil {
		return 0, 0, false
	}
	return first, last, name == partName(first, last, format)
}

// windowOf returns the window of log time that an estimate is in.
func (s *Parts) windowOf(e *quant.Estimate) int64 {
	at, err := time.Parse(time.RFC3339Nano, e.Time)
	if err != nil {
		return 0 // before the log has a time
	}
	return at.UnixNano() / int64(s.config.Every)
}

// Write implements Sink. The records are with the operating system when it
// returns.
func (s *Parts) Write(_ context.Context, estimates []quant.Estimate) error {
	if len(estimates) == 0 || estimates[0].Position <= s.until {
		return nil
	}
	if err := s.write(estimates); err != nil {
		return fmt.Errorf("sinks: parts in %s: %w", s.config.Dir, err)
	}
	return nil
}

func (s *Parts) write(estimates []quant.Estimate) error {
	if s.broken != nil {
		return s.broken
	}
	window := s.windowOf(&estimates[0])
	if window != s.window {
		if err := s.cut(); err != nil {
			return err
		}
	}
	if err := s.config.fault("write tail"); err != nil {
		return err
	}
	if err := s.tail.write(estimates); err != nil {
		return err
	}
	for i := range estimates {
		s.table.append(&estimates[i])
	}
	s.window, s.until = window, estimates[0].Position
	if s.table.rows >= s.config.rowsMax {
		return s.cut()
	}
	return nil
}

// Cut ends the part where the log asks for a checkpoint, after the records with a
// position up to the one given.
func (s *Parts) Cut(position uint64) error {
	if position < s.until {
		return nil // old ground: what follows is in the tail already
	}
	if err := s.cut(); err != nil {
		return fmt.Errorf("sinks: parts in %s: %w", s.config.Dir, err)
	}
	return nil
}

// cut makes a part of the rows, if there are any, and begins a new tail.
func (s *Parts) cut() error {
	if s.broken != nil || s.table.rows == 0 {
		return s.broken
	}
	name := filepath.Join(s.config.Dir, partName(s.after+1, s.until, s.config.Format))
	if err := s.commit(name); err != nil {
		s.broken = fmt.Errorf("%s: %w", name, err) // the rows are in the tail only
		return s.broken
	}
	s.after = s.until
	s.broken = s.renewTail()
	return s.broken
}

// commit writes the part, reads it back and gives it its name.
func (s *Parts) commit(name string) error {
	temporary := name + temporarySuffix
	err := s.config.fault("write part")
	if err == nil {
		err = s.table.write(temporary, &s.config)
	}
	if err == nil {
		err = s.config.fault("rename part")
	}
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, discard(temporary))
	}
	return errors.Join(s.config.fault("sync directory"), s.syncDir())
}

// discard removes what was not finished, which would take room on a disk that is full.
// After a crash the next open does.
func discard(name string) error {
	if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes the names in the directory durable.
func (s *Parts) syncDir() error {
	d, err := os.Open(s.config.Dir)
	if err != nil {
		return err
	}
	return errors.Join(s.config.flush(d), d.Close())
}

// Sync puts on the disk what was written up to a position, so that it needs not come
// again.
func (s *Parts) Sync(position uint64) error {
	err := s.tail.mark(position)
	if err == nil {
		err = s.config.fault("sync tail")
	}
	if err == nil {
		err = s.config.flush(s.tail.file)
	}
	if err != nil {
		return fmt.Errorf("sinks: parts in %s: %w", s.config.Dir, err)
	}
	s.synced = max(s.synced, position)
	return nil
}

// Close implements Sink. The rows that are in no part stay in the tail.
func (s *Parts) Close() error {
	if err := s.release(); err != nil {
		return fmt.Errorf("sinks: close parts in %s: %w", s.config.Dir, err)
	}
	return nil
}

func (s *Parts) release() error {
	s.table.release()
	if s.tail == nil {
		return nil
	}
	return s.tail.close()
}
