package sinks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"gqlstream/quant"
)

// Lines writes one JSON object a line. It is at least once: after a restart
// from an older checkpoint, positions come again.
type Lines struct {
	buffer *bufio.Writer
	encode *json.Encoder
	file   *os.File // nil for a writer that belongs to the caller
}

// NewLines writes to w, which stays the caller's: Close does not close it.
func NewLines(w io.Writer) *Lines {
	buffer := bufio.NewWriterSize(w, 64<<10)
	encode := json.NewEncoder(buffer)
	encode.SetEscapeHTML(false)
	return &Lines{buffer: buffer, encode: encode}
}

// OpenLines appends to a file, which it makes if need be. A last line that a
// crash has cut short is taken off first.
func OpenLines(path string) (*Lines, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("sinks: %w", err)
	}
	end, err := lastLineEnd(file)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("sinks: open %s: %w", path, err)
	}
	s := NewLines(file)
	s.file = file
	return s, nil
}

// Write implements Sink. The lines are with the operating system when it returns;
// Close puts a file on the disk.
func (s *Lines) Write(_ context.Context, estimates []quant.Estimate) error {
	for i := range estimates {
		if err := s.encode.Encode(&estimates[i]); err != nil {
			return fmt.Errorf("sinks: estimate of %q at %d: %w",
				estimates[i].Community, estimates[i].Position, err)
		}
	}
	if err := s.buffer.Flush(); err != nil {
		return fmt.Errorf("sinks: write estimates: %w", err)
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

// lastLineEnd returns the offset after the last line that is complete.
func lastLineEnd(file *os.File) (int64, error) {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	var block [4096]byte
	for end > 0 {
		n := min(end, int64(len(block)))
		if _, err := file.ReadAt(block[:n], end-n); err != nil {
			return 0, err
		}
		for i := n; i > 0; i-- {
			if block[i-1] == '\n' {
				return end - n + i, nil
			}
		}
		end -= n
	}
	return 0, nil
}
