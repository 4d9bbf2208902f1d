package sinks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gqlstream/quant"
)

// tailName is the file of the records that are in no part yet: a line that says
// what it belongs to, then records as in Lines, and marks of Sync between them.
// Programs that read a whole directory pass over names with an underscore.
const tailName = "_tail.ndjson"

// tailFormat changes when older releases could not read the file.
const tailFormat = 1

// tailHeader is the first line of a tail.
type tailHeader struct {
	Format int    `json:"tail"`
	Log    string `json:"log"`
	After  uint64 `json:"after"` // records up to here are in parts
}

// tailMark says that everything up to a position was put on the disk.
type tailMark struct {
	Synced uint64 `json:"synced"`
}

// tailContent is what a tail held when it was opened.
type tailContent struct {
	after, synced uint64
	records       []quant.Estimate
}

// tailLineMax bounds a record with the most classes, ten numbers of 25 bytes for
// each.
const tailLineMax = 4096*10*25 + 1<<20

// readTail reads the tail of a directory whose log is read again from after the
// position from. The emission at the end, which a crash may have cut short, is left
// out if it is going to come again.
func readTail(dir, log string, from uint64) (c tailContent, err error) {
	file, err := os.Open(filepath.Join(dir, tailName))
	if err != nil {
		return c, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 64<<10), tailLineMax)
	lines.Split(wholeLines)
	var header tailHeader
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &header) != nil || header.Format == 0 {
		return c, fmt.Errorf("%s has no header; move the directory away or choose another one", tailName)
	}
	if header.Format != tailFormat {
		return c, fmt.Errorf("%s has format %d, this release reads %d", tailName, header.Format, tailFormat)
	}
	if header.Log != log {
		return c, errors.New("it holds estimates of another log; move it away or choose another directory")
	}
	c.after, c.synced = header.After, header.After
	if err := c.read(lines, from); err != nil {
		return c, err
	}
	c.dropLast(from)
	return c, lines.Err()
}

// wholeLines splits as bufio.ScanLines does, but leaves out a last line that does
// not end.
func wholeLines(data []byte, _ bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}

// read takes the lines up to the first that is damaged. After a power cut that is
// one that was never synced; records that no log will bring again must not follow.
func (c *tailContent) read(lines *bufio.Scanner, from uint64) error {
	damaged := false
	for lines.Scan() {
		var line struct {
			tailMark
			quant.Estimate
		}
		err := json.Unmarshal(lines.Bytes(), &line)
		switch {
		case err != nil:
			damaged = true
		case damaged && max(line.Position, line.Synced) <= from:
			return fmt.Errorf("%s is damaged before position %d, after which the log goes on; move the directory "+
				"away, and make the estimates again with gqlstream replay", tailName, from)
		case damaged:
		case line.Synced > 0:
			c.synced = line.Synced
		default:
			c.records = append(c.records, line.Estimate)
		}
	}
	return lines.Err()
}

// dropLast takes off the last emission if the log brings it again.
func (c *tailContent) dropLast(from uint64) {
	n := len(c.records)
	if n == 0 || c.records[n-1].Position <= from {
		return
	}
	last := c.records[n-1].Position
	for n > 0 && c.records[n-1].Position == last {
		n--
	}
	c.records = c.records[:n]
}

// tail is the file being written.
type tail struct {
	file   *os.File
	buffer *bufio.Writer
	encode *json.Encoder
}

// newTail replaces the tail by one with the records given, durably, and with the
// last mark of Sync, which goes on to hold.
func (s *Parts) newTail(records []quant.Estimate) (*tail, error) {
	name := filepath.Join(s.config.Dir, tailName)
	if err := s.config.fault("new tail"); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name+temporarySuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	t := &tail{file: file, buffer: bufio.NewWriterSize(s.config.disk(file), 64<<10)}
	t.encode = json.NewEncoder(t.buffer)
	t.encode.SetEscapeHTML(false)
	err = t.encode.Encode(tailHeader{Format: tailFormat, Log: s.config.Log, After: s.after})
	if err == nil {
		err = t.write(records)
	}
	if err == nil && s.synced > s.after { // checkpoints after which nothing was emitted
		err = t.mark(s.synced)
	}
	if err == nil {
		err = s.config.flush(file)
	}
	if err == nil {
		err = s.config.fault("rename tail")
	}
	if err == nil {
		err = os.Rename(name+temporarySuffix, name)
	}
	if err == nil {
		err = s.syncDir()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), discard(name+temporarySuffix))
	}
	return t, nil
}

// renewTail begins an empty tail after a part.
func (s *Parts) renewTail() error {
	t, err := s.newTail(nil)
	if err != nil {
		return err
	}
	old := s.tail
	s.tail = t
	return old.file.Close()
}

func (t *tail) write(records []quant.Estimate) error {
	for i := range records {
		if err := t.encode.Encode(&records[i]); err != nil {
			return fmt.Errorf("estimate of %q at %d: %w", records[i].Community, records[i].Position, err)
		}
	}
	return t.buffer.Flush()
}

// mark says that what stands before it is on the disk; it is, once the file is
// flushed.
func (t *tail) mark(position uint64) error {
	return errors.Join(t.encode.Encode(tailMark{position}), t.buffer.Flush())
}

func (t *tail) close() error {
	return errors.Join(t.buffer.Flush(), t.file.Sync(), t.file.Close())
}
