package sinks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"gqlstream/alerts"
	"gqlstream/quant"
)

// Lines writes one JSON object a line. A file holds every record exactly once,
// restarts included: see OpenLines. It has one owner.
type Lines struct {
	buffer *bufio.Writer
	encode *json.Encoder
	file   *os.File // nil for a writer that belongs to the caller
	until  uint64   // records up to this position are in the file already
}

// NewLines writes to w, which stays the caller's: Close does not close it.
func NewLines(w io.Writer) *Lines {
	buffer := bufio.NewWriterSize(w, 64<<10)
	encode := json.NewEncoder(buffer)
	encode.SetEscapeHTML(false)
	return &Lines{buffer: buffer, encode: encode}
}

// LinesConfig says where the records of a file come from.
type LinesConfig struct {
	Path string
	Log  string // identity of the log; a file of another log is refused
	From uint64 // the log is read again from after this position
}

// logSuffix names the file beside the lines that holds the identity of their log.
const logSuffix = ".log-id"

// OpenLines appends to a file, which it makes if need be, so that after a restart
// each record is in it once: the emission at the end, which a crash may have cut
// short, is taken off if it is going to come again, and what comes again of those
// before it is left out. A file with records of another log is an error.
func OpenLines(c LinesConfig) (s *Lines, err error) {
	if err := claim(c); err != nil {
		return nil, fmt.Errorf("sinks: %w", err)
	}
	file, err := os.OpenFile(c.Path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("sinks: %w", err)
	}
	end, until, err := resumePoint(file, c.From)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sinks: open %s: %w", c.Path, err), file.Close())
	}
	s = NewLines(file)
	s.file, s.until = file, until
	return s, nil
}

// claim writes the identity of the log beside a new file and compares it beside
// an old one.
func claim(c LinesConfig) error {
	info, err := os.Stat(c.Path)
	if err == nil && info.Size() > 0 {
		id, err := os.ReadFile(c.Path + logSuffix)
		if err != nil || string(id) != c.Log {
			return fmt.Errorf("%s holds estimates of another log; move it away or choose another file", c.Path)
		}
		return nil
	}
	return os.WriteFile(c.Path+logSuffix, []byte(c.Log), 0o644)
}

// resumePoint returns where a file that is continued after position from must end,
// and the last position that it then holds.
func resumePoint(file *os.File, from uint64) (end int64, until uint64, err error) {
	var start int64 // of the last emission
	var before, last uint64
	var at int64
	lines := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the rest is no whole line
			break
		}
		var record struct {
			Position uint64 `json:"position"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			return 0, 0, fmt.Errorf("at byte %d: %w", at, err)
		}
		if record.Position != last {
			start, before, last = at, last, record.Position
		}
		at += int64(len(line))
	}
	if last > from {
		return start, before, nil // it comes again, whole
	}
	return at, last, nil
}

// Write implements Sink. The lines are with the operating system when it returns;
// Sync and Close put a file on the disk.
func (s *Lines) Write(_ context.Context, estimates []quant.Estimate) error {
	for i := range estimates {
		if estimates[i].Position <= s.until {
			continue
		}
		if err := s.encode.Encode(&estimates[i]); err != nil {
			return fmt.Errorf("sinks: estimate of %q at %d: %w",
				estimates[i].Community, estimates[i].Position, err)
		}
	}
	return s.flush()
}

// WriteAlerts writes what began and ended at one position, in a file that holds
// nothing else.
func (s *Lines) WriteAlerts(transitions []alerts.Transition) error {
	for i := range transitions {
		if transitions[i].Position <= s.until {
			continue
		}
		if err := s.encode.Encode(&transitions[i]); err != nil {
			return fmt.Errorf("sinks: alert %s: %w", transitions[i].ID, err)
		}
	}
	return s.flush()
}

func (s *Lines) flush() error {
	if err := s.buffer.Flush(); err != nil {
		return fmt.Errorf("sinks: write lines: %w", err)
	}
	return nil
}

// Sync puts what was written on the disk, so that it needs not come again.
func (s *Lines) Sync(uint64) error {
	if s.file == nil {
		return nil
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sinks: %w", err)
	}
	return nil
}

// Close implements Sink.
func (s *Lines) Close() error {
	err := s.buffer.Flush()
	if s.file != nil {
		err = errors.Join(err, s.file.Sync(), s.file.Close())
	}
	if err != nil {
		return fmt.Errorf("sinks: close: %w", err)
	}
	return nil
}
