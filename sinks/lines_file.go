package sinks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gqlstream/internal/filelock"
)

// positionSuffix is the suffix of the position file beside a lines file.
const positionSuffix = ".position"

// PositionFile returns the name of that file.
func PositionFile(path string) string { return path + positionSuffix }

// linesFile is a follower that appends records to a file, one JSON object a line, each exactly
// once, even after a crash of the process or a failure of the disk. It writes estimates and alerts.
type linesFile struct {
	path   string
	log    string
	state  fileStore
	disk   disk
	file   *os.File
	buffer *bufio.Writer
}

// OpenLinesFile continues a file, which it creates if need be, after its durable part. If the file
// was moved away or emptied, by log rotation for example, a new file continues. A file with records
// of another log gives an error that matches ErrNotOurs.
func OpenLinesFile(path, log string) (Follower, Cursor, error) {
	return openLinesFile(path, log, disk{})
}

func openLinesFile(path, log string, d disk) (Follower, Cursor, error) {
	s := &linesFile{path: path, log: log, state: fileStore{path + positionSuffix, d}, disk: d}
	after, err := s.open()
	if err != nil {
		if s.file != nil {
			err = errors.Join(err, s.file.Close())
		}
		return nil, Cursor{}, fmt.Errorf("open %s: %w", path, err)
	}
	return s, after, nil
}

func (s *linesFile) open() (after Cursor, err error) {
	if err := s.disk.before("open lines"); err != nil {
		return after, err
	}
	if info, err := os.Stat(s.path); err == nil && !info.Mode().IsRegular() {
		return after, fmt.Errorf("it is no regular file: %w", ErrNotOurs)
	}
	if s.file, err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err == nil {
		err = filelock.Acquire(
			s.file) // a worker of a group that hands it over may still be writing
	}
	if err != nil {
		return after, err
	}
	end, err := s.file.Seek(0, io.SeekEnd)
	if err != nil {
		return after, err
	}
	p, err := readState(context.Background(), s.state, s.log)
	none := errors.Is(err, os.ErrNotExist)
	switch {
	case end == 0 && (none || err != nil && p.Log != ""):
		// nothing of another log there to be mixed with
		p = progress{Log: s.log}
	case none:
		return after, fmt.Errorf(
			"%s is missing, which names the log and the end of its records: %w",
			s.state,
			ErrNotOurs,
		)
	case err != nil:
		return after, err
	case end == 0:
		p.Bytes, none = 0, true // rotated
	case end < p.Bytes:
		return after, fmt.Errorf("it has %d bytes, and had %d: %w", end, p.Bytes, ErrNotOurs)
	}
	if err := s.file.Truncate(p.Bytes); err != nil {
		return after, err
	}
	s.buffer = bufio.NewWriterSize(s.disk.writer(s.file), 64<<10)
	if none ||
		// the position file must name the log before the first record is written
		p.Cursor == (Cursor{}) {
		return p.Cursor, writeState(context.Background(), s.state, p)
	}
	return p.Cursor, nil
}

// Take implements Follower. The lines are with the operating system when it returns.
func (s *linesFile) Take(_ context.Context, e *Stored) error {
	lines, err := e.Lines()
	if err != nil || len(lines) == 0 {
		return err
	}
	for _, record := range lines {
		_, _ = s.buffer.Write(record) // Flush repeats an error
		_ = s.buffer.WriteByte('\n')
	}
	err = s.disk.before("write lines")
	if err == nil {
		err = s.buffer.Flush()
	}
	return err
}

// Sync implements Follower. A file that was moved away has the records up to now.
func (s *linesFile) Sync(ctx context.Context, taken Cursor) (Cursor, error) {
	err := s.disk.before("sync lines")
	if err == nil {
		err = s.file.Sync()
	}
	info, failed := s.file.Stat()
	if err = errors.Join(err, failed); err == nil {
		err = writeState(ctx, s.state, progress{Log: s.log, Cursor: taken, Bytes: info.Size()})
	}
	if now, missing := os.Stat(s.path); err == nil && (missing != nil || !os.SameFile(now, info)) {
		err = fmt.Errorf("%s was moved away or removed; a new file begins", filepath.Base(s.path))
	}
	return taken, err
}

// Close implements Follower.
func (s *linesFile) Close() error { return s.file.Close() }
