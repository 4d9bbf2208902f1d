package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// LogWriter writes events of all kinds as NDJSON, which Config reads as a
// log: each line is an event as on the wire with its kind before the rest,
//
//	{"kind":"edge","src":1,"dst":2,"time":"2026-01-01T00:00:00Z"}
//
// Classes are indices. It is owned by one goroutine.
type LogWriter struct {
	w      *bufio.Writer
	path   string
	line   []byte
	closes []io.Closer // the innermost first
}

// NewLogWriter returns a writer to w. Close flushes it and leaves w open.
func NewLogWriter(w io.Writer) *LogWriter {
	return &LogWriter{w: bufio.NewWriterSize(w, 1<<16), path: "log"}
}

// CreateLog creates the file at path, which ends in .ndjson or .jsonl, or in one
// of these and .gz or .zst.
func CreateLog(path string) (*LogWriter, error) {
	format, packed, err := formatOf(path)
	if err != nil {
		return nil, err
	}
	if format != ndjsonFile {
		return nil, fmt.Errorf("ingest: %s: a log is .ndjson or .jsonl", path)
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	l := &LogWriter{path: path, closes: []io.Closer{file}}
	out := io.Writer(file)
	switch packed {
	case ".gz":
		z := gzip.NewWriter(file)
		out, l.closes = z, []io.Closer{z, file}
	case ".zst":
		z, err := zstd.NewWriter(file, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("ingest: %s: %w", path, err), file.Close())
		}
		out, l.closes = z, []io.Closer{z, file}
	}
	l.w = bufio.NewWriterSize(out, 1<<16)
	return l, nil
}

// Write writes the events of b in the order of their positions. Those of one position stay in the
// order of their kind; kinds come in the order vertex, label, prediction, member, edge, control.
func (l *LogWriter) Write(b *event.Batch) error {
	next := event.Mark{}
	for {
		kind, ok := firstKind(next, b)
		if !ok {
			return nil
		}
		l.line = append(append(append(l.line[:0], kindPrefix...), kind.String()...), `",`...)
		at := len(l.line)
		l.line = wire.AppendJSON(l.line, b, kind, next.Count[kind])
		next.Count[kind]++
		l.line = append(l.line[:at], l.line[at+1:]...) // the brace that opens the event
		if _, err := l.w.Write(append(l.line, '\n')); err != nil {
			return fmt.Errorf("ingest: write %s: %w", l.path, err)
		}
	}
}

// logKinds are the kinds of events in the order in which a log holds those of one position.
var logKinds = append(tableKinds[:len(tableKinds):len(tableKinds)], event.KindControl)

// firstKind returns the kind of the event with the lowest position after the mark.
func firstKind(m event.Mark, b *event.Batch) (kind event.Kind, ok bool) {
	var lowest event.Position
	for _, k := range logKinds {
		if m.Count[k] < b.Count(k) {
			if p, _ := b.Stamp(k, m.Count[k]); p < lowest || !ok {
				kind, lowest, ok = k, p, true
			}
		}
	}
	return kind, ok
}

// Close writes out what is buffered and closes the file, if CreateLog made it.
func (l *LogWriter) Close() error {
	errs := []error{l.w.Flush()}
	for _, c := range l.closes {
		errs = append(errs, c.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ingest: write %s: %w", l.path, err)
	}
	return nil
}
